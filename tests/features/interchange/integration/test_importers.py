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

RECORDED = Path(__file__).parent / "recorded"
PREFIX = {
    "pytest-benchmark": "pytest_benchmark",
    "pyperf": "pyperf",
    "asv": "asv",
    "google-benchmark": "google_benchmark",
    "torch": "torch_benchmark",
}
BENCHMARKS = {
    "pytest-benchmark": [
        "test_speed.py__test_sort_200_",
        "test_speed.py__test_sort_400_",
        "test_speed.py__test_join",
    ],
    "pyperf": ["str_of_int", "sum_of_range"],
    "asv": [
        "speed.Sorting.time_sort_200___sorted__",
        "speed.Sorting.time_sort_200___reversed__",
        "speed.Sorting.time_sort_400___sorted__",
        "speed.peakmem_list",
        "speed.time_join",
    ],
    "google-benchmark": ["BM_Accumulate_256", "BM_Accumulate_4096", "BM_Sort"],
    "torch": ["matmul__64x64", "relu"],
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

    assert [one.workload for one in samples.workloads] == BENCHMARKS[tool]
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


@pytest.mark.parametrize(
    ("tool", "which", "benchmark", "lengths", "first"),
    [
        ("pytest-benchmark", "day1", "test_speed.py__test_join", [12], 1.6241599951172248e-05),
        ("pytest-benchmark", "saved", "test_speed.py__test_join", [1], None),
        # Processes are launches, and calibration is none.
        ("pyperf", "day1", "str_of_int", [3, 3, 3, 3], 1.7015229797356923e-07),
        ("pyperf", "memory", "memory_of_a_list", [1, 1, 1], 12554240.0),
        ("asv", "head", "speed.time_join", [6], 1.575940004840959e-05),
        ("google-benchmark", "head", "BM_Accumulate_256", [4], 2.8993871610518914e-07),
        ("google-benchmark", "aggregates", "BM_Sort", [1], 2.0897737372442164e-06),
    ],
)
def test_rounds_are_steps_of_launches_in_seconds(tool, which, benchmark, lengths, first):
    launches = read(tool, which)[benchmark].launches

    assert [len(launch) for launch in launches] == lengths
    assert first is None or math.isclose(launches[0][0], first)


@pytest.mark.parametrize(
    ("tool", "which", "benchmark"),
    [
        # What a file of one benchmark has, its name among it, stands above the benchmark.
        ("pyperf", "memory", "memory_of_a_list"),
        ("asv", "head", "speed.peakmem_list"),
    ],
)
def test_memory_is_host_memory(tool, which, benchmark):
    metric = read(tool, which)[benchmark].metric

    assert (metric.kind, metric.unit) == ("host_memory", "byte")


def only_calibrated(data):
    data["benchmarks"][0]["runs"] = data["benchmarks"][0]["runs"][:1]


def failed(data):
    data["results"]["speed.Sorting.time_sort"][0] = None
    del data["results"]["speed.Sorting.time_sort"][2:]


TRACKED = ("speed.track_length", "the file does not say its unit")


@pytest.mark.parametrize(
    ("tool", "which", "edit", "left_out"),
    [
        ("pyperf", "day1", only_calibrated, [("str_of_int", "")]),
        ("asv", "head", None, [TRACKED]),
        ("asv", "head", failed, [("speed.Sorting.time_sort", "the benchmark failed"), TRACKED]),
        ("google-benchmark", "head", None, [("BM_Refused", "no such device")]),
    ],
)
def test_a_benchmark_without_a_number_is_left_out_with_a_reason(tool, which, edit, left_out):
    reading = a_reading(tool, which, edit)

    assert [one.benchmark for one in reading.left_out] == [name for name, _ in left_out]
    for one, (name, reason) in zip(reading.left_out, left_out, strict=True):
        assert one.reason.startswith(reason)
        assert name not in {benchmark.name for benchmark in reading.benchmarks}


def test_google_benchmark_counts_in_the_unit_of_each_benchmark():
    (launch,) = read("google-benchmark", "head")["BM_Sort"].launches

    assert all(1e-6 < step < 1e-4 for step in launch)


def test_raw_times_of_torch_are_times_of_many_runs():
    measurements = json.loads((RECORDED / "torch_benchmark_head.json").read_text())
    found = read("torch", "head")["relu"]

    assert found.launches == ((pytest.approx(measurements[1]["raw_times"][0] / 50),),)


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
        (([named("a/b")], [named("a:b")]), r"found 'a/b' and 'a:b', both 'a\.b' here"),
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
