"""The fixture `benchmark`: what tests that are written for pytest-benchmark find in it."""

import importlib.util
import subprocess
import sys

import pytest

from ci_perf.features.pytest_benchmarks.collected import collect_tests
from ci_perf.features.pytest_benchmarks.plugin import list_arguments

PEDANTIC = """
import pytest
done = []

def test_all_of_it(benchmark):
    def prepare():
        done.append("setup")
        return (3,), {"more": 4}
    def target(number, more):
        done.append("target")
        return number + more
    def clean(number, more):
        done.append("teardown")
    assert benchmark.pedantic(target, setup=prepare, teardown=clean, rounds=2) == 7
    assert done == 2 * ["setup", "target", "teardown"]

def test_rounds_and_iterations(benchmark):
    called = []
    benchmark.pedantic(lambda: called.append(1), rounds=2, iterations=3, warmup_rounds=1)
    assert len(called) == 10

def test_arguments(benchmark):
    assert benchmark.pedantic(divmod, args=(7, 2), rounds=2, iterations=3) == (3, 1)

@pytest.mark.parametrize("wrong", [
    {"rounds": 0}, {"iterations": 0}, {"warmup_rounds": -1},
    {"rounds": "1"}, {"setup": lambda: ((1,), {}), "args": (1,)}, {"setup": print, "iterations": 2},
])
def test_wrong_use(benchmark, wrong):
    with pytest.raises((TypeError, ValueError)):
        benchmark.pedantic(abs, **{"args": (), **wrong})
    benchmark._used_by = ""
    benchmark(abs, 1)

@pytest.mark.benchmark(group="sums")
@pytest.mark.parametrize("size", [3])
def test_attributes(benchmark, size):
    benchmark.extra_info["size"] = size
    assert (benchmark.group, benchmark.params, benchmark.param) == ("sums", {"size": 3}, "3")
    assert benchmark.name == "test_attributes[3]" and benchmark.fullname.endswith(benchmark.name)
    assert benchmark.disabled and not benchmark.enabled and benchmark.stats is None
    benchmark(abs, 1)

def test_a_decorator(benchmark):
    @benchmark
    def result():
        return 3
    assert result == 3

def test_a_second_use(benchmark):
    benchmark(abs, 1)
    with pytest.raises(RuntimeError, match="expected one use"):
        benchmark(abs, 1)

def test_what_it_raises_reaches_the_test(benchmark):
    with pytest.raises(ZeroDivisionError):
        benchmark(lambda: 1 / 0)
"""


def test_tests_find_what_they_know_from_pytest_benchmark(tmp_path):
    (tmp_path / "test_fixture.py").write_text(PEDANTIC)

    found = collect_tests(tmp_path, [], ["test_fixture.py"])

    assert {test.node: test.reason for test in found if test.outcome != "passed"} == {}
    assert len(found) == 13


def test_pytest_itself_finds_no_fixture_of_ours(tmp_path):
    """Where pytest-benchmark is installed, its own tests go on as before."""
    (tmp_path / "test_a.py").write_text("def test_a(benchmark): pass")

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_a.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert "fixture 'benchmark' not found" in done.stdout


@pytest.mark.parametrize(
    ("name", "word"),
    [("xdist", "-n0"), ("pytest_cov", "--no-cov"), ("pytest_timeout", "--timeout=0")],
)
def test_what_would_disturb_a_test_that_is_timed_is_turned_off_where_it_is_there(
    name, word, tmp_path, monkeypatch
):
    (tmp_path / f"{name}.py").touch()
    monkeypatch.syspath_prepend(tmp_path)

    assert importlib.util.find_spec(name) is not None
    assert word in list_arguments("/root", "/cache", "a.py")
