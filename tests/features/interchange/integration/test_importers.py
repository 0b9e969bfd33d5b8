"""Importers on files that the real tools wrote; `recorded/README.md` says how."""

import json
import math
import tempfile
from pathlib import Path

import pytest

from ci_perf.errors import InvalidFileError
from ci_perf.features.interchange import importers
from ci_perf.features.interchange.importers import Benchmark, Reading
from ci_perf.judging import samples as judge
from ci_perf.model import codec
from ci_perf.model.comparison import Change, Verdict
from ci_perf.model.samples import SampledMetric, Samples
from tests.reviewed import assert_reviewed

RECORDED = Path(__file__).parent / "recorded"
PREFIX = {
    "pytest-benchmark": "pytest_benchmark",
    "pyperf": "pyperf",
    "asv": "asv",
    "google-benchmark": "google_benchmark",
    "torch": "torch_benchmark",
}


def a_reading(tool, which, edit=None):
    """Read a recorded file, or what `edit` makes of it."""
    path = RECORDED / f"{PREFIX[tool]}_{which}.json"
    if edit is None:
        return importers.read(tool, path)
    data = json.loads(path.read_text())
    with tempfile.TemporaryDirectory() as folder:
        edited = Path(folder, path.name)
        edited.write_text(json.dumps(edit(data) or data))
        return importers.read(tool, edited)


def merged(tool):
    days = [a_reading(tool, f"day{day}") for day in (1, 2, 3)]
    return importers.merge(days, [a_reading(tool, "head")])


def read(tool, which, edit=None):
    """What one file says of each benchmark."""
    return {each.name: each for each in a_reading(tool, which, edit).benchmarks}


@pytest.mark.parametrize("tool", PREFIX)
def test_every_benchmark_becomes_a_workload_that_blames_nobody(tool):
    """Without pairs nothing is proven, however large the change."""
    samples = merged(tool).samples
    comparison = judge.judge(samples, base="days", head="head")

    assert {len(one.history) for one in samples.workloads} == {3}
    assert codec.decode(codec.encode(samples), Samples, name="samples.json") == samples
    assert all(isinstance(row, Change) for row in comparison.rows)
    assert not {row.verdict for row in comparison.rows} & {Verdict.REGRESSED, Verdict.IMPROVED}


def test_a_change_that_is_large_for_its_history_is_suspected():
    rows = judge.judge(merged("pytest-benchmark").samples, base="days", head="head").rows

    assert {row.workload for row in rows if row.verdict is Verdict.LIKELY_SLOWER} == {
        "test_speed.py__test_sort_200_",
        "test_speed.py__test_sort_400_",
    }


def shown(reading):
    """Return each benchmark as text: its metric, the steps of each launch and the first of them."""
    found = {}
    for each in reading.benchmarks:
        steps = " + ".join(str(len(launch)) for launch in each.launches)
        kind, unit = each.metric.kind, each.metric.unit
        found[each.name] = f"{kind} in {unit}: {steps} from {each.launches[0][0]:.9g}"
    return found | {each.benchmark: f"left out: {each.reason}" for each in reading.left_out}


def test_each_file_has_the_launches_that_were_reviewed():
    """Rounds are steps in seconds; processes of pyperf are launches, and calibration is none."""
    found = {}
    for tool, prefix in PREFIX.items():
        for path in sorted(RECORDED.glob(f"{prefix}_*.json")):
            found[path.name] = shown(importers.read(tool, path))

    assert_reviewed(json.dumps(found, indent=2) + "\n", RECORDED / "readings.json")


def only_calibrated(data):
    data["benchmarks"][0]["runs"] = data["benchmarks"][0]["runs"][:1]


def failed(data):
    data["results"]["speed.Sorting.time_sort"][0] = None
    del data["results"]["speed.Sorting.time_sort"][2:]


@pytest.mark.parametrize(
    ("tool", "which", "edit", "name", "reason"),
    [
        ("pyperf", "day1", only_calibrated, "str_of_int", ""),
        ("asv", "head", failed, "speed.Sorting.time_sort", "the benchmark failed"),
    ],
)
def test_a_benchmark_without_a_number_is_left_out_with_a_reason(tool, which, edit, name, reason):
    said = shown(a_reading(tool, which, edit))[name]

    assert said.startswith(f"left out: {reason}")


def test_torch_with_two_measurements_of_one_name_is_refused():
    with pytest.raises(InvalidFileError, match="different names, found 'relu' and 'relu'"):
        read("torch", "head", lambda data: [data[1], data[1]])


@pytest.mark.parametrize("tool", PREFIX)
@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "3", "{}", '{"benchmarks": 3}'])
def test_what_the_tool_did_not_write_is_refused(tool, text, tmp_path):
    path = tmp_path / "x.json"
    path.write_text(text)

    with pytest.raises(InvalidFileError, match=r"x\.json: expected .*, found"):
        importers.read(tool, path)


@pytest.mark.parametrize("tool", PREFIX)
def test_files_of_another_tool_are_refused(tool):
    others = [RECORDED / f"{PREFIX[other]}_head.json" for other in PREFIX if other != tool]

    for other in others:
        with pytest.raises(InvalidFileError, match=rf"{other.name}: expected .*, found"):
            importers.read(tool, other)


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (0, "matmul: 64x64: expected a time above 0, found 0"),
        (-1.0, "matmul: 64x64: expected a time above 0, found -1"),
        (1e30, "matmul__64x64: expected numbers from 1e-12 to 1e\\+19, found 1e"),
        (math.inf, "matmul: 64x64: expected a finite number, found inf"),
        (10**400, "matmul: 64x64: expected a finite number, found inf"),
    ],
)
def test_a_time_that_is_none_is_refused(number, message):
    def measured(data):
        data[0] |= {"raw_times": [number], "number_per_run": 1}

    with pytest.raises(InvalidFileError, match=rf"torch_benchmark_head\.json: {message}"):
        read("torch", "head", measured)


def test_what_is_exact_may_be_zero():
    def nothing_counted(data):
        data["metadata"]["unit"] = "integer"
        data["benchmarks"][0]["runs"] = [{"values": [0, 0]}]

    found = read("pyperf", "memory", nothing_counted)["memory_of_a_list"]

    assert found.launches == ((0.0, 0.0),)


def test_several_files_of_the_head_are_launches_of_one_session():
    heads = [a_reading("torch", "day1"), a_reading("torch", "head")]
    samples = importers.merge([a_reading("torch", "day2")], heads).samples

    assert [len(one.head) for one in samples.workloads] == [2, 2]


def test_launches_of_files_in_turns_are_paired_in_order():
    pairs = [
        (named("f", step_s=1.0), named("f", step_s=2.0)),
        (named("f", step_s=3.0), named("f", step_s=4.0)),
    ]
    (workload,) = importers.merge([], [], pairs).samples.workloads

    assert workload.pairs == (((1.0,), (2.0,)), ((3.0,), (4.0,)))
    assert (workload.history, workload.head) == ((), ())


def test_a_benchmark_that_the_head_lacks_stays_a_workload():
    head = a_reading("torch", "head", lambda data: data[:1])
    samples = importers.merge([a_reading("torch", "day1")], [head]).samples

    assert [(one.workload, len(one.head)) for one in samples.workloads] == [
        ("matmul__64x64", 1),
        ("relu", 0),
    ]


def failed_on(side):
    """Three days and a head of Google Benchmark, of which `BM_Sort` has failed on one side."""

    def fail(data):
        for entry in data["benchmarks"]:
            if entry["name"].startswith("BM_Sort"):
                entry |= {"error_occurred": True, "error_message": "no memory"}

    tool = "google-benchmark"
    days = [a_reading(tool, f"day{day}", fail if side == "base" else None) for day in (1, 2, 3)]
    merged = importers.merge(days, [a_reading(tool, "head", fail if side == "head" else None)])
    rows = judge.judge(merged.samples, failed=merged.failed, base="days", head="head").rows
    return {row.workload: row for row in rows}


def test_a_benchmark_that_failed_on_the_head_is_missing_and_says_why():
    """`BM_Refused` has failed on both sides."""
    rows = failed_on("head")

    for name, note in {"BM_Sort": "no memory", "BM_Refused": "no such device"}.items():
        row = rows[name]
        assert (row.verdict, row.code, row.note) == (Verdict.FAILED, "missing", note)


def test_a_benchmark_that_failed_on_the_base_is_new():
    assert failed_on("base")["BM_Sort"].verdict is Verdict.NEW


def test_any_format_of_reads_is_judged(tmp_path):
    path = tmp_path / "fine.json"
    command = {"command": "train", "times": [1.0, 1.1]}
    path.write_text(json.dumps({"results": [command]}))
    (benchmark,) = importers.read("hyperfine", path).benchmarks

    assert (benchmark.name, benchmark.launches) == ("train", ((1.0, 1.1),))


def named(*names, step_s=1.0):
    metric = SampledMetric(unit="s", kind="time")
    return Reading(
        benchmarks=tuple(
            Benchmark(name=name, metric=metric, launches=((step_s,),)) for name in names
        )
    )


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (([named("a/b")], [named("a:b")]), r"found 'a/b' and 'a:b', which are both read as 'a\.b'"),
        (([named("---")], [named("a")]), "expected a benchmark with a name, found '---'"),
        (([], [], [(named("f"), named("g"))]), r"f: expected as many launches .*, found 1 and 0"),
    ],
)
def test_files_that_do_not_fit_together_are_refused(files, message):
    with pytest.raises(InvalidFileError, match=message):
        importers.merge(*files)


def test_a_benchmark_whose_metric_changes_is_refused():
    memory = a_reading("pyperf", "memory")
    time = a_reading("pyperf", "memory", lambda data: data["metadata"].update(unit="second"))

    with pytest.raises(InvalidFileError, match="expected the same metric in every file, found"):
        importers.merge([memory], [time])
