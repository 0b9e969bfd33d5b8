"""How the benchmarks of a checkout are found, and what a workload of each is called."""

import pytest

from ci_perf.errors import UsageError
from ci_perf.features.pytest_benchmarks.collected import collect_tests, name_tests
from ci_perf.features.pytest_benchmarks.suite import find_failure
from ci_perf.launch import never
from tests.plans import a_planned

TESTS = """
import pytest

@pytest.mark.parametrize("size", [1, 2.5])
def test_sum(benchmark, size):
    assert benchmark(lambda: size) == size

@pytest.mark.benchmark
def test_marked():
    pass

class TestGroup:
    @pytest.mark.codspeed_benchmark
    def test_of_codspeed(self):
        pass

def test_that_fails(benchmark):
    assert benchmark(abs, -1) == 2

@pytest.mark.skip(reason="not today")
def test_that_is_skipped(benchmark):
    benchmark(abs, -1)

def test_that_skips_itself(benchmark):
    pytest.skip("no data here")

@pytest.mark.xfail(reason="known")
def test_that_is_expected_to_fail(benchmark):
    assert benchmark(abs, -1) == 2

def test_that_measures_nothing(benchmark):
    pass

def test_of_something_else():
    raise AssertionError("it is not run")
"""


@pytest.fixture
def root(tmp_path):
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks/test_all.py").write_text(TESTS)
    return tmp_path


def collected(root, *paths, **options):
    return {
        test.node.partition("::")[2] or test.node: (test.outcome, test.reason)
        for test in collect_tests(root, [], paths or ["benchmarks"], **options)
    }


def test_each_test_is_run_once_and_told_by_its_outcome(root):
    assert collected(root) == {
        "test_sum[1]": ("passed", ""),
        "test_sum[2.5]": ("passed", ""),
        "test_marked": ("passed", ""),
        "TestGroup::test_of_codspeed": ("passed", ""),
        "test_that_fails": ("failed", "assert 1 == 2"),
        "test_that_is_skipped": ("skipped", "Skipped: not today"),
        "test_that_skips_itself": ("skipped", "Skipped: no data here"),
        "test_that_is_expected_to_fail": ("skipped", "xfail: known"),
        "test_that_measures_nothing": ("unused", ""),
        "test_of_something_else": ("unused", ""),
    }


STOPPED = """
import pathlib, pytest

pytestmark = pytest.mark.filterwarnings("default")

def measured(name):
    with pathlib.Path("ran").open("a") as file:
        file.write(name)

@pytest.fixture
def measures(benchmark):
    benchmark(measured, "a")

def test_in_a_fixture(measures):
    pass

def test_that_swallows_errors(benchmark):
    try:
        benchmark(measured, "b")
    except Exception:
        pass

def test_that_fails_later(benchmark):
    benchmark.pedantic(measured, args=("c",), rounds=3)
    assert False

def test_that_fails_before(benchmark):
    assert not "ready"
    benchmark(measured, "d")

@pytest.mark.xfail(raises=ValueError)
def test_that_is_expected_to_fail(benchmark):
    benchmark(int, "e")

@pytest.mark.benchmark
def test_marked():
    measured("f")
"""


def test_a_test_is_run_up_to_its_benchmark_where_that_tells_its_outcome(root):
    (root / "benchmarks/test_all.py").write_text(STOPPED)

    assert {name: outcome for name, (outcome, _) in collected(root).items()} == {
        "test_in_a_fixture": "passed",
        "test_that_swallows_errors": "passed",
        "test_that_fails_later": "passed",
        "test_that_fails_before": "failed",
        "test_that_is_expected_to_fail": "skipped",
        "test_marked": "passed",
    }
    assert (root / "ran").read_text() == "f"


@pytest.mark.parametrize("starts", [True, False])
def test_a_thread_that_an_import_starts_is_told(root, starts):
    thread = "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n" * starts
    test = "def test_a(benchmark):\n    benchmark(abs, 1)\n"
    (root / "benchmarks/test_all.py").write_text(f"import threading, time\n{thread}{test}")

    for runs in (True, False):
        (found,) = collect_tests(root, [], ["benchmarks"], runs=runs)
        assert found.has_threads is starts


def test_why_a_test_fails_as_it_is_written_is_asked_for_it_alone(root):
    (root / "benchmarks/test_all.py").write_text(STOPPED)

    def found(name):
        node = {"node": f"benchmarks/test_all.py::{name}"}
        return find_failure(a_planned("x", launch="fork", parameters=node), root, [], never)

    assert found("test_that_fails_later") == (
        "benchmarks/test_all.py::test_that_fails_later: assert False"
    )
    assert found("test_in_a_fixture") == ""
    assert (root / "ran").read_text() == "ccca"
    assert find_failure(a_planned("matmul"), root, [], never) == ""


@pytest.mark.parametrize("call", ["pytest.skip('late')", "pytest.xfail('late')"])
def test_a_test_that_may_be_skipped_late_is_run_to_its_end(root, call):
    test = f"import pytest\ndef test_a(benchmark):\n    benchmark(abs, 1)\n    {call}\n"
    (root / "benchmarks/test_all.py").write_text(test)

    assert collected(root)["test_a"][0] == "skipped"


# A plugin that runs coroutines, before all others, as anyio's does.
ASYNC = """
import asyncio, inspect, pytest

@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if inspect.iscoroutinefunction(pyfuncitem.obj):
        asyncio.run(pyfuncitem.obj())
        return True
"""
COROUTINES = """
import asyncio, functools, pytest

@pytest.mark.benchmark
async def test_async():
    await asyncio.sleep(0.005)

def hide(function):
    return functools.wraps(function)(lambda: function())

@pytest.mark.benchmark
@hide
async def test_hidden():
    pass
"""


def test_coroutines_are_measured_by_their_plugin_alone(root):
    """pytest itself fails them: a coroutine that nobody awaits does nothing."""
    (root / "benchmarks/test_all.py").write_text(COROUTINES)
    failed = ("failed", "async def functions are not natively supported.")

    assert collected(root) == {"test_async": failed, "test_hidden": failed}
    (root / "conftest.py").write_text(ASYNC)
    assert collected(root) == {"test_async": ("passed", ""), "test_hidden": failed}


def test_a_test_that_a_marker_leaves_out_is_no_benchmark_of_the_base(root):
    markers = (
        "skip",
        "skipif(1, reason='x')",
        "skipif(0, reason='x')",
        "xfail",
        "xfail(0, reason='x')",
    )
    tests = [
        f"@pytest.mark.{marker}\ndef test_{number}(benchmark): benchmark(abs, -1)"
        for number, marker in enumerate(markers)
    ]
    (root / "benchmarks/test_all.py").write_text("\n".join(["import pytest", *tests]))

    outcomes = [outcome for outcome, _ in collected(root, runs=False).values()]

    assert outcomes == ["skipped", "skipped", "found", "skipped", "found"]


def test_what_comes_after_a_crash_is_known_by_its_name(root):
    body = "import os\ndef test_a(benchmark): os._exit(1)\ndef test_b(benchmark): benchmark(abs, 1)"
    (root / "benchmarks/test_all.py").write_text(body)

    assert collected(root) == {"test_a": ("found", ""), "test_b": ("found", "")}


def test_a_file_that_cannot_be_imported_is_told_and_stops_no_other(root):
    (root / "benchmarks/test_broken.py").write_text("import nowhere_to_be_found")

    found = collected(root)

    reason = "ModuleNotFoundError: No module named 'nowhere_to_be_found'"
    assert found["benchmarks/test_broken.py"] == ("failed", reason)
    assert found["test_marked"] == ("passed", "")


@pytest.mark.parametrize(
    "options",
    [
        "--benchmark-only --benchmark-sort mean --benchmark-min-rounds=3 --codspeed",
        "--codspeed-mode walltime --benchmark-json out.json --strict-markers -x",
    ],
)
def test_options_of_the_plugins_whose_place_ours_takes_mean_nothing(root, options):
    (root / "pytest.ini").write_text(f"[pytest]\naddopts = {options}\n")

    assert collected(root)["test_marked"] == ("passed", "")


def test_settings_of_plugins_are_known_where_warnings_are_errors(root):
    settings = "faulthandler_timeout = 30\ncache_dir = there\nfilterwarnings = error"
    (root / "pytest.ini").write_text(f"[pytest]\naddopts = --strict-config\n{settings}\n")

    assert collected(root)["test_marked"] == ("passed", "")
    assert not (root / "there").exists()


def test_a_pytest_that_fails_itself_is_told(root):
    (root / "conftest.py").write_text("def pytest_sessionstart(): raise RuntimeError('not so')")

    with pytest.raises(UsageError, match=r"(?s)found its exit code 3; it says.*not so"):
        collected(root)


def test_a_folder_without_tests_is_told_with_what_pytest_says(root):
    (root / "empty").mkdir()

    with pytest.raises(
        UsageError, match=r"(?s)expected tests in empty, found its exit code 5.*no tests ran"
    ):
        collect_tests(root, [], ["empty"])


@pytest.mark.parametrize(
    ("node", "paths", "name"),
    [
        ("benchmarks/test_a.py::test_b", ["benchmarks"], "test_a.test_b"),
        ("benchmarks/test_a.py::test_b", ["benchmarks/test_a.py"], "test_a.test_b"),
        ("benchmarks/x/test_a.py::T::test_b", ["benchmarks"], "x.test_a.T.test_b"),
        ("b/test_a.py::test_b", ["b", "c"], "b.test_a.test_b"),
        ("b/test_a.py::test_b[128-torch.float32]", ["b"], "test_a.test_b.128-torch_float32"),
        ("b/test_a.py::test_b[a/b c::d]", ["b"], "test_a.test_b.a-b-c-d"),
        ("b/test_a.py", ["b"], "test_a"),
    ],
)
def test_a_workload_is_called_by_the_node_id_below_what_the_paths_share(node, paths, name):
    assert name_tests([node], paths) == {node: name}


def test_names_that_would_be_the_same_or_too_long_end_in_a_digest():
    nodes = ["test_a.py::t[a/b]", "test_a.py::t[a b]", f"test_a.py::t[{'x' * 300}]"]

    names = name_tests(nodes, ["."])

    assert len(set(names.values())) == 3
    assert all(len(name) < 170 for name in names.values())
    assert names[nodes[0]].startswith("test_a.t.a-b-")
