"""Refusals of engines are named with their next step; the words in `recorded/` are real."""

import re
from pathlib import Path

import pytest

from ci_perf.features.containers.launch import engine_errors

RECORDED = Path(__file__).parent / "recorded"

# What is known, by names in `recorded/`; all other words are passed on.
KNOWN = {
    "the daemon does not let this user in": ("perm", "docker_permission"),
    "expected a running daemon": (
        *("badctx", "badhost", "oldapi", "sock_missing", "docker_no_daemon"),
    ),
    "the disk of the engine is full": ("full_create", "full_pull", "full_start"),
    "the engine gives this container no GPU": (
        *("cdi", "gpus", "hook_device", "hook_library", "hook_mismatch", "hook_no_driver"),
        *("hook_requirement", "runtime", "docker_no_gpu_vendor", "docker_cdi_device"),
        *("docker_requirement", "podman_cdi_host_device"),
    ),
    "expected the image, found none": (
        *("missing_config", "missing_local", "pull_auth", "pull_digest", "pull_notag"),
        "docker_denied",
    ),
    "the container's memory limit is smaller": ("mem_low",),
}
MEANINGS = {name: meaning for meaning, names in KNOWN.items() for name in names}


def refusals():
    for file in sorted(RECORDED.glob("*.txt")):
        parts = re.split(r"^## (\w+)\n", file.read_text(), flags=re.MULTILINE)
        for name, said in zip(parts[1::2], parts[2::2], strict=True):
            engine = "podman" if "podman" in (file.name + name) else "docker"
            yield pytest.param(engine, name, said, id=f"{file.stem}-{name}")


EVERY = list(refusals())


@pytest.mark.parametrize(("engine", "name", "said"), EVERY)
def test_a_refusal_is_named_with_its_next_step_or_passed_on(engine, name, said):
    found = engine_errors.explain(engine, "create", said)

    if meaning := MEANINGS.get(name):
        assert found.startswith(f"`{engine} create`: {meaning}")
        assert "; " in found
    else:
        assert found.startswith(f"`{engine} create` failed: ")
        assert found.endswith(f"; `ci-perf doctor --runner {engine}` looks further")
    assert "Error response from daemon" not in found
    assert "--help" not in found


def test_everything_that_is_known_was_recorded():
    assert set(MEANINGS) <= {param.values[1] for param in EVERY}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("Error: exec: python9: executable file not found", "failed: exec: python9: executable"),
        ("\n\n", "failed: it said nothing"),
        ('level=warning msg="no space left on device?"\nError: something else\n', "something else"),
        ("WARNING: no manifest unknown\nError: something else\n", "failed: something else"),
        (f"{'x' * 5000} the end", "xxx the end; "),
        ('Error: no such image: "{engine}{0}"', 'no such image: "{engine}{0}"; '),
        ("mounting /srv: mkdir: no space left on device: unknown", "disk of the engine is full"),
        ("Error: Get https://nvcr.io/v2/nvidia/cuda: no such host", "failed: Get https://nvcr.io"),
    ],
)
def test_the_last_line_that_says_something_is_the_reason(said, words):
    found = engine_errors.explain("docker", "start", said)

    assert words in found
    assert len(found) < 600


def test_a_program_that_is_absent_is_named_with_the_way_without():
    assert "--runner local" in engine_errors.absent("podman")
