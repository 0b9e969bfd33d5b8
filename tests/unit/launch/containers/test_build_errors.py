"""Why a build failed, from words of docker 20.10's two builders and of podman 4.3."""

import pytest

from ci_perf.launch.containers import build_errors

WORDS = ("docker", "buildkit", "podman")


def failing(builder, *said, code=1, command="RUN it"):
    """Return what a builder writes when its second step says something, and fails."""
    program = command.removeprefix("RUN ")
    match builder:
        case "docker":
            begin = ["Step 1/2 : FROM base", " ---> 6c3807381fcb", f"Step 2/2 : {command}"]
            end = [f"The command '/bin/sh -c {program}' returned a non-zero code: {code}"]
        case "buildkit":
            begin = ["#4 [1/2] FROM base", "#4 CACHED", "", f"#5 [2/2] {command}"]
            ended = f"executor failed running [/bin/sh -c {program}]: exit code: {code}"
            end = [f"#5 ERROR: {ended}", "------", f" > [2/2] {command}:", "------", ended]
            said = tuple(f"#5 0.066 {line}" for line in said)
        case _:
            begin = ["STEP 1/2: FROM base", f"STEP 2/2: {command}"]
            end = [
                f'Error: building at STEP "{command}": while running runtime: exit status {code}'
            ]
            end += ['time="2026-01-01T00:00:00Z" level=error msg="exit status 1"']
    return [*begin, *said, *end]


def explained(builder, lines):
    return build_errors.explained("podman" if builder == "podman" else "docker", 1, lines)


def test_colours_and_the_end_of_a_line_are_left_out():
    assert build_errors.plain("\x1b[91mno\x1b[0m \x1b[1;31myes\x1b[K\r\n") == "no yes"


@pytest.mark.parametrize("builder", WORDS)
def test_a_step_that_nobody_knows_is_told_with_its_exit_code(builder):
    found = explained(builder, failing(builder, "it is 42", code=7))

    assert "a step failed (exit code 7)" in found


@pytest.mark.parametrize("builder", WORDS)
def test_what_our_own_dockerfile_says_of_a_base_is_repeated_with_the_next_step(builder):
    lines = failing(builder, "base image: expected torch, found none in /usr/bin/python3")

    found = explained(builder, lines)

    assert "build`: base image: expected torch, found none in /usr/bin/python3; name" in found
    assert "--base" in found


APT = 'RUN base.py compilers || { echo "so they are installed by apt-get"  && apt-get update; }'
NO_GCC = "base image: expected a gcc that compiles for Python, found none on the PATH"
TRIED = "so they are installed by apt-get"


@pytest.mark.parametrize("builder", WORDS)
@pytest.mark.parametrize("said", [(NO_GCC, TRIED), (TRIED, NO_GCC)], ids=["in order", "mixed"])
def test_a_base_without_compilers_and_without_apt_needs_either(builder, said):
    lines = failing(builder, *said, "/bin/sh: 1: apt-get: not found", code=127, command=APT)

    assert "a base needs compilers, or apt-get to install them" in explained(builder, lines)


@pytest.mark.parametrize("builder", WORDS)
def test_compilers_that_apt_could_not_fetch_are_not_the_bases_fault(builder):
    fetch = "Err:1 http://deb.example Temporary failure resolving 'deb.example'"

    found = explained(builder, failing(builder, NO_GCC, TRIED, fetch, command=APT))

    assert "a package index could not be reached" in found
    assert "--build-arg PIP_INDEX_URL" in found


@pytest.mark.parametrize("builder", WORDS)
@pytest.mark.parametrize(
    ("said", "meaning"),
    [
        ("dd: error writing '/x': No space left on device", "the disk of the engine is full"),
        (
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE",
            "another file than the one that",
        ),
        ("ERROR: Hashes are required in --require-hashes mode, but", "without version or hash"),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed", "is not believed"),
        ("ERROR: No matching distribution found for msgspec==0.21.1", "has no msgspec==0.21.1 for"),
    ],
)
def test_what_programs_of_a_step_say_is_explained(builder, said, meaning):
    assert meaning in explained(builder, failing(builder, said))


def test_what_an_earlier_step_got_over_is_not_the_reason():
    earlier = ["Step 1/3 : RUN pip", "WARNING: Connection timed out", NO_GCC]

    assert "a step failed" in explained("docker", [*earlier, *failing("docker", "no")])


REFUSED = "dial tcp 127.0.0.1:5999: connect: connection refused"


@pytest.mark.parametrize(
    ("engine", "last"),
    [
        ("docker", f'Get "http://127.0.0.1:5999/v2/": {REFUSED}'),
        ("docker", f"failed to solve with frontend dockerfile.v0: failed to do request: {REFUSED}"),
        ("podman", f"Error: creating build container: initializing source: {REFUSED}"),
    ],
)
def test_what_the_engine_says_itself_is_known_from_elsewhere(engine, last):
    found = explained(engine, ["Step 1/1 : FROM 127.0.0.1:5999/x:1", last])

    assert found.startswith(f"`{engine} build`: the registry could not be reached: 127.0.0.1:5999")


@pytest.mark.parametrize(
    "last",
    [
        "Error response from daemon: dockerfile parse error line 2: unknown instruction: RUNN",
        "failed to solve: dockerfile parse error line 2: unknown instruction: RUNN",
        "failed to create LLB definition: dockerfile parse error line 2: unknown instruction: RUNN",
    ],
)
def test_unknown_words_of_the_engine_are_passed_on(last):
    assert explained("docker", [last]) == (
        "`docker build` failed: dockerfile parse error line 2: unknown instruction: RUNN; correct "
        "what this names"
    )


def test_a_build_that_says_nothing_is_said_to_say_nothing():
    assert "it said nothing" in explained("docker", [])
