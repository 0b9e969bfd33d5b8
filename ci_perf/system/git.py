"""Run git: without hooks, helpers, network or tokens; describe the commit under measure."""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, TypeVar

from ci_perf.errors import CiPerfError
from ci_perf.model.run import UNKNOWN_COMMIT, Source
from ci_perf.system import linux, processes
from ci_perf.system.processes import Completed, FailedProgramError

_Output = TypeVar("_Output")

_ANSWER_S = 30.0

# Set inside a hook of the user: they would lead away from the folder that we name.
ELSEWHERE = (
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_WORK_TREE",
)
# Git may start helpers that a checkout or its user has set up: none needs a token.
_SECRET = ("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "ACTIONS_RUNTIME_TOKEN", "GH_TOKEN", "GITHUB_TOKEN")
# Git asks neither a person nor the network, and answers in English.
_QUIET = {
    "GIT_ALLOW_PROTOCOL": "file",
    "GIT_LFS_SKIP_SMUDGE": "1",  # files of Git LFS that are here are used, none is downloaded
    "GIT_OPTIONAL_LOCKS": "0",  # to look writes nothing
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
# We start no hook or helper of the user, and leave none running.
_ALONE = (
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "gc.auto=0"),
    *("-c", "log.showRoot=true"),
    *("-c", "log.showSignature=false"),
    *("-c", "submodule.recurse=false"),
)


def source(root: Path) -> Source:
    """Describe the commit that is checked out at `root`; "unknown" outside a repository.

    Where git cannot be asked (no git in the container, a folder of another owner), GitHub's own
    variables answer, and nothing is claimed of changed files: ``dirty`` is then false for want of
    knowledge.
    """
    commit = _ask(root, "rev-parse", "HEAD") or os.environ.get("GITHUB_SHA")
    branch = os.environ.get("GITHUB_HEAD_REF") or _ask(root, "rev-parse", "--abbrev-ref", "HEAD")
    return Source(
        commit=linux.short(commit or "") or UNKNOWN_COMMIT,
        branch=linux.short(branch or "") or UNKNOWN_COMMIT,
        # Untracked files are mostly results of ours; a changed tracked file is another program.
        dirty=bool(_ask(root, "status", "--porcelain", "--untracked-files=no")),
    )


def find_top(root: Path) -> Path:
    """Return the top of the repository that `root` lies in, or `root` where there is none."""
    top = _ask(root, "rev-parse", "--show-toplevel")
    return Path(top) if top else root


def command(folder: Path, *arguments: str) -> list[str]:
    """Return the git command that works in `folder` and starts no program of the user."""
    return ["git", "-C", str(folder), *_ALONE, *arguments]


def environment(ours: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a git command that works in the folder it is given, and alone."""
    kept = {name: value for name, value in ours.items() if name not in {*ELSEWHERE, *_SECRET}}
    return kept | _QUIET


def run(folder: Path, *arguments: str, timeout_s: float = _ANSWER_S) -> Completed:
    """Run one git command in `folder`. Raises CiPerfError: no git here, or no end in time."""
    return _run_git(processes.capture, folder, arguments, timeout_s)


def read(folder: Path, *arguments: str, timeout_s: float = _ANSWER_S) -> bytes:
    """Return what one git command writes, unchanged. Raises CiPerfError, also where it fails."""
    code, out, err = _run_git(processes.capture_bytes, folder, arguments, timeout_s)
    if code:
        raise CiPerfError(
            f"`git {' '.join(arguments)}` in {folder}: {err.decode(errors='replace').strip()}"
        )
    return out


@contextlib.contextmanager
def stream(folder: Path, *arguments: str, given: bytes = b"") -> Iterator[IO[bytes]]:
    """Let the block read what one git command writes, however long it takes.

    Raises CiPerfError: no git here, or git fails.
    """
    try:
        with processes.stream(
            command(folder, *arguments), environment=environment(os.environ), given=given
        ) as output:
            yield output
    except FailedProgramError as error:
        raise CiPerfError(f"`git {arguments[0]}` in {folder}: {error}") from None
    except FileNotFoundError as error:
        raise _no_git(error) from None


def _run_git(
    capture: Callable[..., _Output], folder: Path, arguments: tuple[str, ...], timeout_s: float
) -> _Output:
    """Run git; say what a person can do where it cannot be run."""
    try:
        return capture(
            command(folder, *arguments), timeout_s=timeout_s, environment=environment(os.environ)
        )
    except TimeoutError:
        raise CiPerfError(
            f"`git {arguments[0]}` in {folder}: expected an answer within {timeout_s:g} s, found "
            "none; see whether its disk is busy or gone"
        ) from None
    except OSError as error:
        raise _no_git(error) from None


def _no_git(error: OSError) -> CiPerfError:
    return CiPerfError(
        f"git: expected a program that can be started, found {error.strerror}; install git"
    )


def _ask(root: Path, *arguments: str) -> str:
    """Return the answer of git, empty if it fails."""
    try:
        answer = run(root, *arguments)
    except CiPerfError:
        return ""
    return answer.out if answer.code == 0 else ""
