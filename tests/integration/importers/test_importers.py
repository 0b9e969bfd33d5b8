"""Importers on files that the real tools wrote; `recorded/README.md` says how."""

import json
import math
from pathlib import Path

import pytest

from ci_perf import importers
from ci_perf.errors import InvalidFileError
from ci_perf.importers.reading import Document
from ci_perf.judging import samples as judge
from ci_perf.model import codec
from ci_perf.model.comparison import Change, Verdict
from ci_perf.model.samples import Samples

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
        "test_speed.py.test_sort.200",
        "test_speed.py.test_sort.400",
        "test_speed.py.test_join",
    ],
    "pyperf": ["str_of_int", "sum_of_range"],
    "asv": [
        "speed.Sorting.time_sort.200.sorted",
        "speed.Sorting.time_sort.200.reversed",
        "speed.Sorting.time_sort.400.sorted",
        "speed.peakmem_list",
        "speed.time_join",
    ],
    "google-benchmark": ["BM_Accumulate.256", "BM_Accumulate.4096", "BM_Sort"],
    "torch": ["matmul.64x64", "relu"],
}


def a_document(tool, which, edit=None):
    """A recorded file, or what `edit` makes of it."""
    name = f"{PREFIX[tool]}_{which}.json"
    text = (RECORDED / name).read_text()
    if edit is not None:
        data = json.loads(text)
        text = json.dumps(edit(data) or data)
    return Document(name=name, text=text)


def merged(tool):
    days = [a_document(tool, f"day{day}") for day in (1, 2, 3)]
    return importers.merge(tool, days, [a_document(tool, "head")])


def read(tool, which, edit=None):
    """What one file says of each benchmark."""
    reading = importers.TOOLS[tool](a_document(tool, which, edit))
    return {benchmark.name: benchmark for benchmark in reading.benchmarks}


@pytest.mark.parametrize("tool", importers.TOOLS)
def test_every_benchmark_becomes_a_workload(tool):
    workloads = merged(tool).samples.workloads

    assert [one.workload for one in workloads] == BENCHMARKS[tool]
    assert {len(one.history) for one in workloads} == {3}


@pytest.mark.parametrize("tool", importers.TOOLS)
def test_samples_of_a_tool_are_samples_as_any_other(tool):
    samples = merged(tool).samples

    assert codec.decode(codec.encode(samples), Samples, name="samples.json") == samples


@pytest.mark.parametrize("tool", importers.TOOLS)
def test_files_of_a_tool_are_judged_and_blame_nobody(tool):
    """Without pairs nothing is proven, however large the change."""
    comparison = judge.judge(merged(tool).samples, base="days", head="head")

    assert all(isinstance(row, Change) for row in comparison.rows)
    assert not {row.verdict for row in comparison.rows} & {Verdict.REGRESSED, Verdict.IMPROVED}


def test_a_change_that_is_large_for_its_history_is_suspected():
    rows = judge.judge(merged("pytest-benchmark").samples, base="days", head="head").rows

    assert {row.workload for row in rows if row.verdict is Verdict.LIKELY_SLOWER} == {
        "test_speed.py.test_sort.200",
        "test_speed.py.test_sort.400",
    }


def test_the_rounds_of_pytest_benchmark_are_steps_of_one_launch():
    found = read("pytest-benchmark", "day1")["test_speed.py::test_join"]
    (launch,) = found.launches

    assert len(launch) == 12
    assert launch[0] == 1.6241599951172248e-05


def test_a_saved_file_of_pytest_benchmark_has_the_median():
    found = read("pytest-benchmark", "saved")["test_speed.py::test_join"]

    assert [len(launch) for launch in found.launches] == [1]


def test_the_processes_of_pyperf_are_launches_and_calibration_is_none():
    found = read("pyperf", "day1")["str_of_int"]

    assert [len(launch) for launch in found.launches] == [3, 3, 3, 3]
    assert found.launches[0][0] == 1.7015229797356923e-07


def test_pyperf_may_have_measured_memory_of_a_single_benchmark():
    """What a file of one benchmark has, its name among it, stands above the benchmark."""
    found = read("pyperf", "memory")["memory_of_a_list"]

    assert (found.metric.kind, found.metric.unit) == ("host_memory", "byte")
    assert found.launches == ((12554240.0,), (12537856.0,), (12464128.0,))


def test_a_benchmark_of_pyperf_without_values_is_left_out():
    def only_calibrated(data):
        data["benchmarks"][0]["runs"] = data["benchmarks"][0]["runs"][:1]

    reading = importers.TOOLS["pyperf"](a_document("pyperf", "day1", only_calibrated))

    assert [one.benchmark for one in reading.left_out] == ["str_of_int"]
    assert [benchmark.name for benchmark in reading.benchmarks] == ["sum_of_range"]


def test_the_samples_of_asv_are_steps_of_one_launch():
    found = read("asv", "head")["speed.time_join"]

    assert [len(launch) for launch in found.launches] == [6]
    assert found.launches[0][0] == 1.575940004840959e-05


def test_asv_without_samples_has_one_number():
    def without_samples(data):
        data["result_columns"].remove("samples")
        for values in data["results"].values():
            del values[11:]

    found = read("asv", "head", without_samples)

    assert found["speed.time_join"].launches == ((1.4743850260856562e-05,),)


def test_peak_memory_of_asv_is_host_memory():
    metric = read("asv", "head")["speed.peakmem_list"].metric

    assert (metric.kind, metric.unit) == ("host_memory", "byte")


def test_what_asv_skipped_or_tracked_is_left_out_with_a_reason():
    left_out = importers.TOOLS["asv"](a_document("asv", "head")).left_out

    assert [(one.benchmark, one.reason.partition(":")[0]) for one in left_out] == [
        ("speed.Sorting.time_sort(400, 'reversed')", "it has no result"),
        (
            "speed.track_length",
            "it is no time and no memory, and the file does not say its unit",
        ),
    ]


def test_a_benchmark_of_asv_that_failed_is_left_out():
    def failed(data):
        data["results"]["speed.Sorting.time_sort"][0] = None
        del data["results"]["speed.Sorting.time_sort"][2:]

    left_out = importers.TOOLS["asv"](a_document("asv", "head", failed)).left_out

    assert "speed.Sorting.time_sort" in [one.benchmark for one in left_out]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda d: d.update(version=1), "expected results of asv in version 2, found 1"),
        (
            lambda d: d["results"]["speed.time_join"][0].append(1.0),
            "speed.time_join: expected 1 results, .* found 2 and 1",
        ),
        (
            lambda d: d["results"].update(x=["fast"]),
            "x: expected results that asv wrote, found",
        ),
    ],
)
def test_results_that_asv_did_not_write_are_refused(edit, message):
    with pytest.raises(InvalidFileError, match=rf"^asv_head\.json: {message}"):
        read("asv", "head", edit)


def test_repetitions_of_google_benchmark_are_steps_in_seconds():
    found = read("google-benchmark", "head")["BM_Accumulate/256"]
    (launch,) = found.launches

    assert len(launch) == 4
    assert math.isclose(launch[0], 2.8993871610518914e-07)


def test_google_benchmark_counts_in_the_unit_of_each_benchmark():
    (launch,) = read("google-benchmark", "head")["BM_Sort"].launches

    assert all(1e-6 < step < 1e-4 for step in launch)


def test_aggregates_of_google_benchmark_have_a_median():
    found = read("google-benchmark", "aggregates")["BM_Sort"]

    assert found.launches == ((pytest.approx(2.0897737372442164e-06),),)


def test_a_google_benchmark_that_stopped_itself_is_left_out_with_its_words():
    left_out = importers.TOOLS["google-benchmark"](a_document("google-benchmark", "head")).left_out

    assert [(one.benchmark, one.reason) for one in left_out] == [("BM_Refused", "no such device")]


def test_aggregates_without_a_median_are_left_out():
    def only_the_mean(data):
        data["benchmarks"] = data["benchmarks"][:1]

    document = a_document("google-benchmark", "aggregates", only_the_mean)

    assert [one.benchmark for one in importers.TOOLS["google-benchmark"](document).left_out] == [
        "BM_Sort"
    ]


def test_raw_times_of_torch_are_times_of_many_runs():
    measurements = json.loads((RECORDED / "torch_benchmark_head.json").read_text())
    found = read("torch", "head")["relu"]

    assert found.launches == ((pytest.approx(measurements[1]["raw_times"][0] / 50),),)


def test_torch_with_two_measurements_of_one_name_is_refused():
    with pytest.raises(InvalidFileError, match="every benchmark once, found 'relu' twice"):
        read("torch", "head", lambda data: [data[1], data[1]])


@pytest.mark.parametrize("tool", importers.TOOLS)
@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "3", "{}", '{"benchmarks": 3}'])
def test_what_the_tool_did_not_write_is_refused(tool, text):
    with pytest.raises(InvalidFileError, match=r"^x\.json: expected JSON that .* wrote, found: "):
        importers.TOOLS[tool](Document(name="x.json", text=text))


@pytest.mark.parametrize("tool", importers.TOOLS)
def test_files_of_another_tool_are_refused(tool):
    others = [a_document(other, "head") for other in importers.TOOLS if other != tool]

    for other in others:
        with pytest.raises(InvalidFileError, match=rf"^{other.name}: expected JSON that"):
            importers.TOOLS[tool](other)


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (0, "matmul: 64x64: expected numbers from 1e-12 to 1e\\+19, found 0.0"),
        (-1.0, "matmul: 64x64: expected numbers from 1e-12 to 1e\\+19, found -"),
        (1e30, "matmul: 64x64: expected numbers from 1e-12 to 1e\\+19, found 1e"),
        (math.inf, "expected JSON that .* found: Expected `float`, got `null`"),
        (10**400, "expected JSON that .* found: Number out of range"),
    ],
)
def test_a_time_that_is_none_is_refused(number, message):
    def measured(data):
        data[0] |= {"raw_times": [number], "number_per_run": 1}

    with pytest.raises(InvalidFileError, match=rf"^torch_benchmark_head\.json: {message}"):
        read("torch", "head", measured)


def test_what_is_exact_may_be_zero():
    def nothing_counted(data):
        data["metadata"]["unit"] = "integer"
        data["benchmarks"][0]["runs"] = [{"values": [0, 0]}]

    found = read("pyperf", "memory", nothing_counted)["memory_of_a_list"]

    assert found.launches == ((0.0, 0.0),)


def test_several_files_of_the_head_are_launches_of_one_session():
    heads = [a_document("torch", "day1"), a_document("torch", "head")]
    found = importers.merge("torch", [a_document("torch", "day2")], heads).samples

    assert [len(one.head) for one in found.workloads] == [2, 2]


def test_launches_of_files_in_turns_are_paired_in_order():
    def measured(second):
        rows = [{"name": "f", "number_per_run": 1, "raw_times": [second]}]
        return Document(name="x.json", text=json.dumps(rows))

    pairs = [(measured(1.0), measured(2.0)), (measured(3.0), measured(4.0))]
    (found,) = importers.merge("torch", [], [], pairs).samples.workloads

    assert found.pairs == (((1.0,), (2.0,)), ((3.0,), (4.0,)))
    assert (found.history, found.head) == ((), ())


def test_a_pair_that_lacks_a_launch_is_refused():
    with pytest.raises(InvalidFileError, match=r"f: expected as many launches .*, found 1 and 0"):
        importers.merge("torch", [], [], [(named("f"), named("g"))])


def test_a_benchmark_that_the_head_lacks_stays_a_workload():
    head = a_document("torch", "head", lambda data: data[:1])
    found = importers.merge("torch", [a_document("torch", "day1")], [head]).samples

    assert [(one.workload, len(one.head)) for one in found.workloads] == [
        ("matmul.64x64", 1),
        ("relu", 0),
    ]


def named(*names):
    rows = [{"name": name, "number_per_run": 1, "raw_times": [1.0]} for name in names]
    return Document(name="x.json", text=json.dumps(rows))


def test_names_that_become_the_same_are_refused():
    with pytest.raises(InvalidFileError, match=r"found 'a/b' and 'a:b', both 'a\.b' here"):
        importers.merge("torch", [named("a/b")], [named("a:b")])


def test_a_name_without_a_letter_is_refused():
    with pytest.raises(InvalidFileError, match="expected a benchmark with a name, found '---'"):
        importers.merge("torch", [named("---")], [named("a")])


def test_a_benchmark_whose_metric_changes_is_refused():
    memory = a_document("pyperf", "memory")
    time = a_document("pyperf", "memory", lambda data: data["metadata"].update(unit="second"))

    with pytest.raises(InvalidFileError, match="expected the same metric in every file, found"):
        importers.merge("pyperf", [memory], [time])
