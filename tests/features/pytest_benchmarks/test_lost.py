"""Which tests of the base the head does not measure, found by pytest in both checkouts."""

import pytest

from ci_perf import suite
from ci_perf.gate import collecting
from ci_perf.model.run import Source
from ci_perf.worktree import Checkout

TABLE = '[[suites.smoke.pytest]]\npaths = ["bench"]\n'
COMMAND = '[[suites.smoke.commands]]\nname = "nap"\ncommand = "true"\n'
TEST_A = "def test_a(benchmark):\n    benchmark(abs, -1)\n"
TESTS = f"""
import pytest
{TEST_A}
@pytest.mark.parametrize("n", [1, 2])
def test_b(benchmark, n):
    benchmark(abs, n)

@pytest.mark.skip(reason="on both sides")
def test_never(benchmark):
    benchmark(abs, -1)
"""
FILE, CONFTEST, INI, TOML = (
    *("bench/test_x.py", "bench/conftest.py", "pytest.ini", "workloads/suite.toml"),
)
DESELECT = "def pytest_collection_modifyitems(items):\n    items[:] = items[1:]\n"
SAME = {FILE: TESTS, TOML: TABLE, "bench/test_y.py": TEST_A}
BROKEN = "import nowhere_to_be_found"


def written(root, files):
    """Write files, "" for none; return the plan of the suite."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if text:
            (root / name).write_text(text)
    return suite.plan(root / "workloads", "smoke", root=root)


def collected(tmp_path, base, head, *, at_once=True):
    """Collect the tests of both sides; return that of the base."""
    plans = [
        written(tmp_path / side, {**SAME, **files})
        for side, files in (("base", base), ("head", head))
    ]
    checkout = Checkout(
        root=tmp_path / "base",
        top=tmp_path / "base",
        head_top=tmp_path / "head",
        source=Source(commit="b" * 40, branch="main", dirty=False),
        ref="main",
        notes=(),
        plan=plans[0],
    )
    said = []
    _, both = collecting.collect_sides(
        plans[1], checkout, at_once=at_once, notify=said.append, interrupted=lambda: False
    )
    assert len(said) == len({*said})
    return both


def in_place_of(old, new):
    return {FILE: TESTS.replace(old, new)}


@pytest.mark.parametrize(
    ("head", "lost"),
    [
        ({}, {}),
        (in_place_of(TEST_A, ""), {"test_x.test_a": ""}),
        (in_place_of("[1, 2]", "[1, 3]"), {"test_x.test_b.2": ""}),
        (
            in_place_of(TEST_A, f"@pytest.mark.skip(reason='flaky')\n{TEST_A}"),
            {"test_x.test_a": "Skipped: flaky"},
        ),
        (
            in_place_of("    benchmark(abs, -1)\n\n@", "    pass\n@"),
            {"test_x.test_a": "without a benchmark"},
        ),
        ({CONFTEST: DESELECT}, {"test_x.test_a": ""}),
        (
            {INI: "[pytest]\naddopts = --deselect bench/test_x.py::test_a\n"},
            {"test_x.test_a": ""},
        ),
        ({TOML: TABLE + 'keyword = "not test_a"'}, {"test_x.test_a": "", "test_y.test_a": ""}),
        (
            {FILE: "", "bench/test_z.py": TESTS},
            dict.fromkeys(("test_x.test_a", "test_x.test_b.1", "test_x.test_b.2"), ""),
        ),
        (
            {FILE: "import pytest\npytest.skip('not here', allow_module_level=True)"},
            dict.fromkeys(
                ("test_x.test_a", "test_x.test_b.1", "test_x.test_b.2"), "Skipped: not here"
            ),
        ),
        # Other names of the same tests, and a file whose failure has a row of its own.
        ({TOML: TABLE.replace("bench", ".")}, {}),
        ({TOML: "".join(TABLE.replace("bench", f"bench/test_{n}.py") for n in "xy")}, {}),
        ({FILE: BROKEN}, {}),
    ],
)
def test_what_the_head_no_longer_measures_is_lost(tmp_path, head, lost):
    assert collected(tmp_path, {}, head).unmeasured == lost


def test_a_test_is_called_as_in_the_head_whatever_paths_the_base_lacks(tmp_path):
    tables = {TOML: TABLE.replace('["bench"]', '["bench", "more"]')}

    found = collected(tmp_path, tables, {**tables, "more/test_z.py": TEST_A})

    assert found.unmeasured == {}
    assert {workload.id for workload in found.plan.workloads} == {
        *("bench.test_x.test_a", "bench.test_x.test_b.1", "bench.test_x.test_b.2"),
        "bench.test_y.test_a",
    }


def test_a_test_of_the_same_id_in_another_file_is_the_same_unless_the_base_has_that_one(tmp_path):
    moved = {FILE: "", "new/test_x.py": TESTS, "bench/test_y.py": "", "new/test_y.py": TEST_A}

    found = collected(tmp_path / "moved", {}, {**moved, TOML: TABLE.replace("bench", "new")})
    assert found.unmeasured == {}
    inner = {"bench/in/__init__.py": "pass", "bench/in/test_y.py": TEST_A}
    found = collected(tmp_path / "in", inner, {**inner, TOML: TABLE.replace("bench", "bench/in")})
    assert found.unmeasured == {
        **dict.fromkeys(("test_x.test_a", "test_x.test_b.1", "test_x.test_b.2"), ""),
        "test_y.test_a": "",
    }
    assert [(each.id, each.parameters["node"]) for each in found.plan.workloads] == [
        ("test_y.test_a", "bench/in/test_y.py::test_a")
    ]


def test_without_tables_the_head_has_lost_all_tests(tmp_path):
    head = {TOML: '[suites.smoke]\ndevice = "cpu"\n' + COMMAND}

    assert set(collected(tmp_path, {}, head).unmeasured) == {
        *("test_x.test_a", "test_x.test_b.1", "test_x.test_b.2", "test_y.test_a"),
    }


def test_a_file_that_the_base_cannot_import_is_lost_only_where_the_head_lacks_it(tmp_path):
    base = {"bench/test_y.py": BROKEN}

    assert collected(tmp_path / "there", base, {}).unmeasured == {}
    gone = collected(tmp_path / "gone", base, {"bench/test_y.py": ""})
    assert gone.unmeasured == {"test_y": ""}


def test_a_base_in_which_pytest_fails_loses_nothing_and_says_so(tmp_path):
    base = {CONFTEST: "def pytest_sessionstart(): raise RuntimeError('not so')"}

    found = collected(tmp_path, base, {})

    assert found.unmeasured == {}
    assert found.notes[0].startswith("the base has no tests: pytest: expected tests in bench")


# A side waits for the other one.
MEETS = """
import os, pathlib, time
met = pathlib.Path({folder!r})
(met / str(os.getpid())).touch()
end = time.monotonic() + 20
while len([*met.iterdir()]) < 2:
    assert time.monotonic() < end
    time.sleep(0.01)
"""
# A side lets no other one be there.
EXCLUDES = """
import pathlib, time
met = pathlib.Path({folder!r}) / "one"
met.touch(exist_ok=False)

def pytest_sessionfinish():
    time.sleep(0.2)
    met.unlink()
"""


@pytest.mark.parametrize("text", [MEETS, EXCLUDES])
def test_both_sides_are_collected_at_once_and_alone_where_one_is_in_the_way(tmp_path, text):
    folder = tmp_path / "met"
    folder.mkdir()
    files = {CONFTEST: text.format(folder=str(folder))}

    found = collected(tmp_path, files, files)

    assert (found.notes, found.unmeasured) == ((), {})
    assert len(found.plan.workloads) == 4


def test_without_room_the_sides_are_collected_one_after_the_other(tmp_path):
    starts = tmp_path / "starts"
    note = f"open({str(starts)!r}, 'a').write('>')\n"
    ends = f"def pytest_unconfigure():\n    open({str(starts)!r}, 'a').write('<')\n"

    found = collected(tmp_path, {CONFTEST: note + ends}, {CONFTEST: note + ends}, at_once=False)

    assert starts.read_text() == "><><"
    assert found.notes == ()
