"""The benchmarks of a checkout, by their node ids: found by a process of pytest, and named."""

import collections
import hashlib
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from ci_perf.errors import UsageError
from ci_perf.launch import Interrupted, child_environment, never, side_paths
from ci_perf.system import child, scratch

_COLLECTOR = "ci_perf.features.pytest_benchmarks.collector"
_UNSAFE = re.compile(r"[^A-Za-z0-9_=+-]+")
# A baseline's file ends at 200 characters.
_MOST_NAME_CHARS = 150
_DIGEST_CHARS = 8
_LAST_LINES = 30
# Each test runs once, and one that hangs must not hold the machine for ever.
_MOST_S = 3600.0
# How pytest ends that is interrupted, fails itself, or cannot be called so.
_BEFORE_TESTS = {2, 3, 4}


class CollectedTest(msgspec.Struct, frozen=True, kw_only=True):
    """A test by its node id, and how it went when it was run up to its benchmark.

    ``outcome`` is "found" of one that may measure something and was not run to its end, "passed" of
    one that measures something, else "unused"; "failed"; "skipped", also of one that is expected to
    fail. ``has_threads``: the imports of all tests have started one.
    """

    node: str
    outcome: str
    reason: str = ""
    has_threads: bool = False


def collect_tests(
    root: Path,
    python_path: Sequence[str],
    words: Sequence[str],
    *,
    interrupted: Interrupted = never,
    runs: bool = True,
    whole: bool = False,
    is_parallel: bool = False,
) -> list[CollectedTest]:
    """Return the tests that pytest finds by `words`, in its order.

    Each runs up to its benchmark if it `runs`, or as it is written if `whole`. Nothing that they
    start is left; one that `is_parallel` to another needs `child.end_orphans` for that. Raises
    UsageError: pytest finds no test, ends before it has begun, or takes more than an hour;
    KeyboardInterrupt once `interrupted`.
    """
    options = ["whole" if whole else "", *["--co"] * (not runs)]
    sources = [str(root), *(str(root / folder) for folder in python_path)]
    inherited = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([*sources, *([inherited] if inherited else [])])
    with scratch.folder() as folder:
        file = folder.path / "tests.jsonl"
        ended = child.run(
            [sys.executable, "-P", "-m", _COLLECTOR, str(file), *options, *words],
            cwd=str(root),
            environment={
                **child_environment.build_environment_as_it_is(
                    side_paths.build_side_environment(os.environ, root), threads=1
                ),
                "PYTHONPATH": path,
            },
            cookie=scratch.cookie_of_launch(folder.path),
            timeout_s=_MOST_S,
            interrupted=interrupted,
            slot=child.Parallel() if is_parallel else None,
        )
        lines = file.read_bytes().splitlines() if file.exists() else []
    decoder = msgspec.json.Decoder(CollectedTest)
    tests = {test.node: test for test in map(decoder.decode, lines)}  # the last line counts
    has_run = any(test.outcome not in {"found", "unused"} for test in tests.values())
    if not tests or ended.timed_out or (ended.code in _BEFORE_TESTS and not has_run):
        said = "\n".join(ended.tail.splitlines()[-_LAST_LINES:])
        how = f"none after {_MOST_S:.0f} s" if ended.timed_out else f"its exit code {ended.code}"
        raise UsageError(
            f"pytest: expected tests in {' '.join(words)}, found {how}; it says\n{said}"
        )
    return list(tests.values())


def name_tests(nodes: Iterable[str], paths: Sequence[str]) -> dict[str, str]:
    """Return the id of a workload for each test: "test_matmul.test_large.512-float32".

    It is the node id below the folder that `paths` share, with what no file may be called as "-".
    Two that would be the same, and long ones, end in a digest.
    """
    shared = _find_shared_folder(paths)
    names = {node: _spell(node.removeprefix(shared)) for node in nodes}
    times = collections.Counter(names.values())
    return {
        node: name
        if times[name] == 1 and len(name) <= _MOST_NAME_CHARS
        else f"{name[:_MOST_NAME_CHARS]}-{_digest(node)}"
        for node, name in names.items()
    }


def _find_shared_folder(paths: Sequence[str]) -> str:
    folders = [path.partition("::")[0] for path in paths]
    folders = [os.path.dirname(each) if each.endswith(".py") else each for each in folders]  # noqa: PTH120
    shared = os.path.commonpath(folders)
    return f"{shared}/" if shared not in {"", "."} else ""


def _spell(node: str) -> str:
    file, _, inner = node.partition("::")
    text, bracket, parameters = inner.partition("[")
    parts = [*file.removesuffix(".py").split("/"), *text.split("::")]
    parts += [parameters.removesuffix("]").replace(".", "_")] if bracket else []
    return ".".join(filter(None, (_UNSAFE.sub("-", part).strip("-") for part in parts))) or "test"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARS]
