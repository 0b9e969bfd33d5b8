"""A copy of the tree to work in, and forks that end with everything that they have started."""

import compileall
import contextlib
import importlib
import os
import py_compile
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_COPIED = ["ci_perf", "tests", "workloads", "benchmarks", "docs", "examples", "pyproject.toml"]
# Imported once, before the forks, because every one of them would wait for these.
_HEAVY = ["pytest", "hypothesis", "numpy", "scipy.stats", "msgspec", "click", "github"]
# What the latest fork has printed, in the copy.
_SAID = "said.log"


@contextlib.contextmanager
def copied() -> Iterator[Path]:
    """Work in a copy of the tree, which child processes of tests import as well."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        root = Path(folder).resolve()
        for name in _COPIED:
            if (_ROOT / name).is_dir():
                ignored = shutil.ignore_patterns("node_modules", "__pycache__")
                shutil.copytree(_ROOT / name, root / name, ignore=ignored)
            else:
                shutil.copy(_ROOT / name, root / name)
        # By hash: a mutant may be as long and as old as what it replaces.
        mode = py_compile.PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(root, quiet=1, force=True, invalidation_mode=mode)
        os.environ["PYTHONPATH"] = str(root)
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        sys.dont_write_bytecode = True
        sys.path[:] = [str(root), *(path for path in sys.path if Path(path).resolve() != _ROOT)]
        for name in _HEAVY:
            importlib.import_module(name)
        with contextlib.chdir(root):
            yield root


def python_files(names: Iterable[str]) -> list[str]:
    """List files, and those in folders; a name may be one that nothing has yet."""
    files: list[Path] = []
    for name in names:
        path = Path(name)
        files += sorted(path.rglob("*.py")) if path.is_dir() else [path] * path.exists()
    return [str(path) for path in files]


@contextlib.contextmanager
def changed(name: str, text: str) -> Iterator[None]:
    """Let a file of the copy hold another text."""
    path = Path(name)
    source = path.read_bytes()
    path.write_text(text, encoding="utf-8")
    try:
        yield
    finally:
        path.write_bytes(source)


def said() -> str:
    """Return the last lines that a fork has printed."""
    lines = Path(_SAID).read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(lines[-40:])


def run(work: Callable[[], int], *, limit_s: float, is_silent: bool = True) -> int | None:
    """Return the exit code of `work` in a fork, `None` where it took too long."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _become(work, is_silent=is_silent)
    deadline = time.monotonic() + limit_s
    try:
        while time.monotonic() < deadline:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.01)
        return None
    finally:
        for end in (signal.SIGTERM, signal.SIGKILL):  # a fork that has forks ends these first
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child, end)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)


def _become(work: Callable[[], int], *, is_silent: bool) -> None:
    """Do the work, and end."""
    os.setsid()
    if is_silent:
        log = os.open(_SAID, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        for stream in (0, 1, 2):
            os.dup2(log, stream)
    code = 1
    try:
        code = work()
    except BaseException:  # noqa: BLE001  what a mutant raises ends this process only
        traceback.print_exc()
    sys.stdout.flush()
    os._exit(code)
