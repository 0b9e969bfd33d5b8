"""A small project being judged, from baseline to red mark: `make demo`, or `ci-perf demo`.

Copies tiny_vision into a scratch repository and types there what a person would type, `git` and
`ci-perf`: a baseline, a pull request of three commits, a check. Prints the report of the check.
Then looks whether the two slow commits were found and the harmless one was not blamed.
Exit codes: 0 it came out as planted, 3 it did not, 130 interrupted.
"""

import contextlib
import importlib.util
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from ci_perf.errors import CannotWriteError, CiPerfError, ExitCode, UsageError
from ci_perf.system import lock

EXAMPLE = Path(__file__).resolve().parent / "tiny_vision"
SUITE = ("--suite", "smoke", "--device", "cpu", "--wait", "0s")
PLANTED = {
    ("classify_images", "step_time_s"): "a Python loop over the batch",
    ("search_gallery", "host_rss_peak_bytes"): "a second copy of the gallery, in fp64",
}
# What comes, and about how many seconds it takes on two free cores.
CHAPTERS = {
    "1/5 A small image project, in a repository of its own": 1,
    "2/5 Measure it as it is, and commit the numbers as the baseline": 25,
    "3/5 A pull request: three commits, as anybody might have written them": 1,
    "4/5 The CI job: measure again, and launch main beside what has changed": 140,
    "5/5 Did it find what was planted, and nothing else?": 1,
}
BLAMES = {"failed", "numerics_changed", "regressed", "likely_slower"}
# Who commits is said here, so that the demo needs no git configuration.
PROGRAMS = {
    "ci-perf": (sys.executable, "-m", "ci_perf"),
    "git": ("git", "-c", "user.name=Robin", "-c", "user.email=robin@tiny-vision.example"),
}


def main(keep: Path | None, runner: tuple[str, ...]) -> int:
    """Play the demo, in `keep` or a folder that goes again, and return its exit code.

    `runner` says where is measured, in words of `ci-perf run`; here, without any.
    """
    if shutil.which("git") is None:
        raise CiPerfError("demo: expected git on the PATH, found none; install git and try again")
    if not runner and importlib.util.find_spec("torch") is None:
        raise CiPerfError(
            "demo: expected torch beside ci-perf, found none; `pip install 'ci-perf[measure]'` "
            "brings it, or measure in containers: --runner docker --container image=IMAGE"
        )
    if keep is not None and keep.exists() and not (keep.is_dir() and not any(keep.iterdir())):
        raise UsageError(
            f"--keep {keep}: expected a folder that is empty or does not exist yet, found "
            "something there; choose another, or remove it"
        )
    with tempfile.TemporaryDirectory(prefix="ci-perf-demo-", ignore_cleanup_errors=True) as scratch:
        folder = keep or Path(scratch, "repository")
        without_caches = shutil.ignore_patterns("__pycache__")
        try:
            shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True, ignore=without_caches)
        except OSError as error:
            raise CannotWriteError(f"{folder}: cannot be made: {error.strerror}") from None
        return play(folder, environment(scratch), runner)


def environment(temporary: str) -> dict[str, str]:
    """Leave out settings of a person or a CI job that would make the demo play differently."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GIT_", "GITHUB_", "CI_PERF_")) or name.endswith("_WAIT")
    }
    ours = {
        "CI_PERF_LOCK_DIR": str(lock.folder_of_devices()),  # the host's, not one in `temporary`
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_PAGER": "cat",
        "TMPDIR": temporary,  # torch leaves a cache there
    }
    return kept | ours


def play(folder: Path, around: dict[str, str], runner: tuple[str, ...]) -> int:
    """Play all chapters in `folder`, and say how it ended."""

    def run(*command: str, codes: tuple[int, ...] = (0,), stdout: int = 2) -> int:
        say(f"$ {shlex.join(command)}", color=36)
        program = (*PROGRAMS[command[0]], *command[1:])
        # In a session of its own: Ctrl-C reaches us alone, and we pass it on once.
        child = subprocess.Popen(
            program, cwd=folder, env=around, stdout=stdout, start_new_session=True
        )
        try:
            code = child.wait()
        except KeyboardInterrupt:
            child.terminate()  # ci-perf ends its own children first
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(20)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            raise
        if code not in codes:
            raise CiPerfError(
                f"demo: `{shlex.join(command)}`: expected exit code {codes[0]}, found {code}; it "
                "says why above. `ci-perf demo --keep DIR` keeps the repository to look into"
            )
        return code

    say(f"A small project is judged, in about {round(sum(CHAPTERS.values()) / 60)} minutes;")
    say("where other programs use the machine, it takes up to 8:")
    for chapter, seconds in CHAPTERS.items():
        say(f"{chapter}: {seconds} s")
    chapters = iter(CHAPTERS)
    say(f"\n{next(chapters)}", color=1)
    run("git", "init", "--quiet", "--template=", "--initial-branch=main")
    run("git", "add", ".")
    run("git", "commit", "--quiet", "-m", "Begin tiny_vision")

    say(f"\n{next(chapters)}", color=1)
    run("ci-perf", "run", *SUITE, *runner)
    run("ci-perf", "accept", "run.json", "--force", "--reason", "First baseline")
    run("git", "add", "baselines")
    run("git", "commit", "--quiet", "-m", "Accept the first baseline")

    say(f"\n{next(chapters)}", color=1)
    run("git", "switch", "--quiet", "-c", "pull-request")
    run("git", "am", *(f"changes/{patch.name}" for patch in sorted(folder.glob("changes/*.patch"))))
    run("git", "diff", "--stat", "main...pull-request")

    say(f"\n{next(chapters)}", color=1)
    against = ("--against", "main", "--budget", "3m", "--explain", "30s")
    check = ("ci-perf", "check", *SUITE, *against, "--comparison", "comparison.json", *runner)
    code = run(*check, codes=(0, 1, 3), stdout=1)

    say(f"\n{next(chapters)}", color=1)
    rows = json.loads((folder / "comparison.json").read_bytes())["rows"]
    return tell(rows, code)


def tell(rows: list[dict[str, Any]], code: int) -> int:
    """Say whether the rows are as planted, and return the exit code of the demo."""
    say(f"The CI job would have ended with exit code {code}.")
    found = {(row["workload"], row.get("metric", "")): row for row in rows}
    is_as_planted = code == ExitCode.REGRESSED
    for (workload, metric), cause in PLANTED.items():
        row = found.pop((workload, metric), {"verdict": "missing"})
        # On a busy machine, the CPU time proves what the wall time leaves open.
        by_cpu = found.pop((workload, "step_cpu_s"), row) if metric == "step_time_s" else row
        row = by_cpu if by_cpu["verdict"] == "regressed" else row
        is_as_planted &= row["verdict"] == "regressed"
        ratio = row.get("ratio") or 1.0
        say(f"  {workload} {metric}: {cause}: {row['verdict']}, {ratio - 1:+.0%}")
    blamed = [
        row
        for row in found.values()
        if row["verdict"] == "numerics_changed" or (row["gate"] and row["verdict"] in BLAMES)
    ]
    for row in blamed:
        say(f"  {row['workload']} {row.get('metric', '')}: nobody planted it: {row['verdict']}")
    if is_as_planted and not blamed:
        say("Nothing else was blamed, the harmless refactoring included.")
        return ExitCode.OK
    said = "Nothing was blamed that nobody planted, but not all was proven that was planted."
    say("This is not as planted." if blamed else said)
    say("Most often other programs kept this machine busy: try again when it is quiet.")
    return ExitCode.NO_ANSWER


def say(line: str, color: int = 0) -> None:
    """Tell a person something, on stderr: stdout belongs to the report."""
    is_colored = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    sys.stderr.write(f"\x1b[{color}m{line}\x1b[0m\n" if is_colored else f"{line}\n")
    sys.stderr.flush()  # above what the commands write
