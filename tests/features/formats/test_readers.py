"""Every format: the numbers of a file that its tool wrote, what a change makes of them, refusals.

`files/readings.json` has the numbers of each file. After a new file:
`REWRITE_GOLDEN=1 python -m pytest tests/features/formats`, then compare them with the file.
"""

import json
import math
import os
import re
import sys
from pathlib import Path

import pytest

from ci_perf import hooks
from ci_perf.measuring.own_metrics import OwnMetrics
from tests.reviewed import assert_reviewed

FILES = Path(__file__).parent / "files"
READINGS = FILES / "readings.json"
FORMATS = hooks.find_formats()
# Of runs whose requests failed: these are refused below.
FAILED = {"sglang-0.5.23-failed.jsonl": 11, "aiperf-0.13.0-failed.json": 10}
READ = sorted({path.name for path in FILES.iterdir()} - {*FAILED, READINGS.name, "README.md"})
# As the value of a change: the key is left out.
LEFT_OUT = ...

ASV, GOOGLE, HUD = "asv-0.6.6.json", "google-benchmark-1.9.5.json", "hud.json"
GUIDELLM, AIPERF, VLLM = "guidellm-0.8.1.json", "aiperf-0.13.0.json", "vllm.json"
ROW = "results/b.time_x"
NUMBERS = [
    name for name in json.loads((FILES / VLLM).read_text()) if re.search("_ms$|throughput", name)
]
THROUGHPUT = [name for name in NUMBERS if "throughput" in name]


def read(name, path):
    """Read by the format whose name begins the name of the file."""
    tool = max((tool for tool in FORMATS if name.startswith(tool)), key=len)
    return hooks.load(FORMATS[tool])(path)


def shown(readings):
    """Return each reading as text: its kind and its values, or why it has none."""
    return {
        name: each.failure
        or " ".join([each.kind or "-", *(f"{value:.12g}" for value in each.values)])
        for name, each in readings.items()
    }


@pytest.fixture
def read_changed(tmp_path):
    def read_with(name, changes):
        """Read a file of a tool whose values have changed, each given by its path."""
        document = json.loads((FILES / name).read_text())
        for path, value in changes.items():
            *parents, last = (int(key) if key.isdecimal() else key for key in path.split("/"))
            place = document
            for key in parents:
                place = place[key]
            if value is LEFT_OUT:
                del place[last]
            else:
                place[last] = value
        changed = tmp_path / name
        changed.write_text(json.dumps(document))
        return read(name, changed)

    return read_with


def test_each_file_has_the_numbers_that_were_reviewed():
    found = {name: shown(read(name, FILES / name)) for name in READ}

    assert_reviewed(json.dumps(found, indent=2) + "\n", READINGS)


def test_each_format_has_an_example():
    written = {tool for tool in FORMATS if any(name.startswith(tool) for name in READ)}

    # `interchange` reads recorded files of two; what `json` reads has no tool.
    assert {*FORMATS} - written == {"json", "pyperf", "torch"}


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        # asv: samples may be missing; a benchmark that failed keeps its name.
        (ASV, {"results/speed.time_join": [[2.5e-05], []]}, {"speed.time_join": "time 2.5e-05"}),
        (ASV, {ROW: [None, []]}, {"b.time_x": "the benchmark failed"}),
        (ASV, {ROW: [None, [["1", "0"]]]}, {"b.time_x": "the benchmark failed"}),
        (ASV, {ROW: [[1.0, None], [["1", "0"]]]}, {"b.time_x_0_": "the benchmark failed"}),
        # A skipped benchmark is left out.
        (
            GOOGLE,
            {f"benchmarks/{i}/skipped": i >= 7 for i in range(14)},
            {
                "join": None,
                "sum_million": "time 0.000455422573779 0.000592194407819 0.000457927405116",
            },
        ),
        # The time of a request, if the client was asked for it.
        (
            VLLM,
            {"median_e2el_ms": 1200, "p99_e2el_ms": 1500},
            {"median_e2el_ms": "time 1.2", "p99_e2el_ms": "tail 1.5"},
        ),
        # Of fewer than 100 requests there is no tail.
        (VLLM, {"completed": 99}, {"median_ttft_ms": "time 0.05", "p99_ttft_ms": None}),
        (VLLM, {"completed": 100}, {"median_ttft_ms": "time 0.05", "p99_ttft_ms": "tail 0.09"}),
        # At a chosen rate, throughput is the load and not the server.
        (
            VLLM,
            {"request_rate": 20, "request_throughput": 19.2},
            {"median_ttft_ms": "time 0.05", **dict.fromkeys(THROUGHPUT)},
        ),
        *(
            (VLLM, {"request_rate": rate}, {"request_throughput": "rate 20"})
            for rate in ("inf", "trace", math.inf, None, 0)
        ),
        # What the client did not see is left out.
        (
            VLLM,
            {"median_tpot_ms": 0, "p99_tpot_ms": 0},
            {"median_tpot_ms": None, "p99_tpot_ms": None, "median_ttft_ms": "time 0.05"},
        ),
    ],
)
def test_a_change_of_a_file_changes_its_numbers(name, changes, expected, read_changed):
    found = shown(read_changed(name, changes))

    assert {each: found.get(each) for each in expected} == expected


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        (ASV, {ROW: [[1.0], [["1", "0"]]]}, r"b\.time_x: expected 2 results, one for each"),
        (ASV, {ROW: [[1.0], [["1", "0"]] * 100]}, "each combination of parameters, found 1"),
        (ASV, {ROW: [[1.0], [["a" * 20_000]]]}, "a name of at most 10,000 characters"),
        (ASV, {ROW: ["x", []]}, r"results of this format, found: Expected `array \| null`"),
        (ASV, {"version": 1}, r"in version 2, found 1; .*`asv update`"),
        (
            "nvbench.json",
            {
                "benchmarks/0/states/0/is_skipped": True,
                "benchmarks/0/states/0/skip_reason": "Unexpected error: out of memory",
            },
            "Device=0 T=I32: expected a time, found: Unexpected error: out of memory",
        ),
        (
            "nvbench.json",
            {"benchmarks/0/states/0/summaries": []},
            "Device=0 T=I32: expected a summary nv/cold/time/gpu/mean, found none",
        ),
        (
            "hyperfine-1.15.0.json",
            {"results/0/command": "sleep_0.02"},
            r"found 'sleep_0\.02' and 'sleep 0\.02'",
        ),
        (HUD, {"0/metric/benchmark_values": []}, "expected benchmark_values, found none"),
        # Loads that say nothing of a server.
        (VLLM, {"failed": 3}, "^expected no failed requests, found 3$"),
        (VLLM, {"completed": 0, "failed": 0}, "^expected completed requests, found 0$"),
        (VLLM, {"completed": None}, "^expected a number 'completed', found None$"),
        (VLLM, {"request_throughput": "x"}, "^expected a number 'request_throughput', found 'x'$"),
        (
            VLLM,
            dict.fromkeys(NUMBERS, 0),
            "^expected times and rates above 0, found only 0$",
        ),
        (
            VLLM,
            {"median_tpot_ms": math.nan},
            "^median_tpot_ms: expected a finite number, found nan",
        ),
        # An older one does not say `failed`.
        (VLLM, {"failed": LEFT_OUT, "completed": 199}, "expected no failed requests, found 1"),
        (
            VLLM,
            {"request_rate": 4, "request_throughput": 2.1},
            r"^the server is saturated: expected 4 requests/s, found 2\.1$",
        ),
        # The wait in the queue hides no saturation.
        (
            VLLM,
            {
                "request_rate": 4,
                "completed": 1000,
                "request_throughput": 3,
                "median_ttft_ms": 40_000,
            },
            "saturated",
        ),
        (
            GUIDELLM,
            {"benchmarks/0/config/strategy": {"type_": "poisson", "rate": 60}},
            "the server is saturated: expected 60 requests/s, found 37",
        ),
        (
            GUIDELLM,
            {"benchmarks/0/metrics/request_totals/errored": 2},
            "expected no failed requests, found 2",
        ),
        (
            GUIDELLM,
            {"benchmarks/0/metrics/request_totals/successful": 0},
            "expected completed requests, found 0",
        ),
        (AIPERF, {"is_complete": False}, "expected a complete run, found one that was cancelled"),
        (AIPERF, {"was_cancelled": True}, "expected a complete run, found one that was cancelled"),
        (AIPERF, {"request_count": None}, "expected completed requests, found 0"),
        (
            AIPERF,
            {"input_config": {"phases": [{"kind": "profiling", "rate": 200}]}},
            "the server is saturated: expected 200 requests/s",
        ),
    ],
)
def test_what_decides_nothing_is_refused(name, changes, expected, read_changed):
    with pytest.raises(ValueError, match=expected):
        read_changed(name, changes)


@pytest.mark.parametrize(("name", "count"), FAILED.items())
def test_failed_requests_are_counted(name, count):
    with pytest.raises(ValueError, match=f"expected no failed requests, found {count}"):
        read(name, FILES / name)


@pytest.mark.parametrize(
    ("completed", "served", "saturated"),
    [
        (1000, 20, False),
        (1000, 17, False),  # the random times between requests, and 10 %
        (1000, 16, True),
        (20, 12, False),  # it waited longer for the last answers than it sent requests
        (20, 9, True),
    ],
)
def test_a_short_run_is_not_called_saturated(completed, served, saturated, read_changed):
    # 40 tokens at 11.5 ms, so that the last answer takes 0.45 s.
    changes = {
        "request_rate": 20,
        "completed": completed,
        "request_throughput": served,
        "total_output_tokens": 40 * completed,
    }
    try:
        is_refused = not read_changed(VLLM, changes)
    except ValueError as error:
        is_refused = "saturated" in str(error)

    assert is_refused is saturated


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("N,Triton\n1,2,3\n", "row 2: expected 2 cells, found 3"),
        ("N\n1\n", "row 2: expected 2 cells, found 1"),
        ("N,Triton\n1,fast\n", r"Triton\.N=1: expected a number, found 'fast'"),
        ("N,Triton (ms)\n1,0\n", "expected a time above 0, found 0"),
        ("N,Triton\n", "expected at least one benchmark, found none"),
        ("\n", "expected results, found an empty file"),
    ],
)
def test_a_table_of_triton_that_says_nothing_is_refused(text, expected, tmp_path):
    file = tmp_path / "plot.csv"
    file.write_text(text)

    with pytest.raises(ValueError, match=expected):
        read("triton", file)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("N,Triton (ms),Torch (ms)\n1,2,3\n", {"Triton__ms_.N=1", "Torch__ms_.N=1"}),
        ("N,Triton\n1,2\n", {"Triton.N=1"}),
    ],
)
def test_a_line_of_triton_with_whole_numbers_is_no_size(text, expected, tmp_path):
    file = tmp_path / "plot.csv"
    file.write_text(text)

    assert set(read("triton", file)) == expected


# --- a folder of results


def test_of_a_folder_of_asv_the_newest_results_are_read(tmp_path):
    (tmp_path / "new.json").write_bytes((FILES / ASV).read_bytes())
    for name in ("old.json", "machine.json", "benchmarks.json"):
        (tmp_path / name).write_text("{}")
    os.utime(tmp_path / "old.json", (1, 1))
    os.utime(tmp_path / "new.json", (2, 2))

    assert read("asv", tmp_path) == read("asv", FILES / ASV)


def test_a_folder_without_results_of_asv_is_refused(tmp_path):
    (tmp_path / "machine.json").write_text("{}")

    with pytest.raises(ValueError, match="expected results of asv in the folder, found none"):
        read("asv", tmp_path)


def test_a_folder_without_events_is_refused(tmp_path):
    with pytest.raises(ValueError, match="expected at least one benchmark, found none"):
        read("tensorboard", tmp_path)


def test_without_tensorboard_its_package_is_named(tmp_path, monkeypatch):
    missing = "tensorboard.backend.event_processing.event_accumulator"
    monkeypatch.setitem(sys.modules, missing, None)

    with pytest.raises(ValueError, match="`pip install tensorboard`"):
        read("tensorboard", tmp_path)


# --- numbers of which the file says no more than a name


@pytest.mark.parametrize(
    ("metric", "shows"),
    [
        ("latency_us", "time 1e-06"),
        ("latency_s", "time 1"),
        ("tokens/s", "rate 1"),
        ("token_per_sec", "rate 1"),
        ("speedup", "- 1"),
        ("epochs", "- 1"),
    ],
)
def test_the_unit_of_a_hud_metric_is_the_end_of_its_name(metric, shows, read_changed):
    found = read_changed(HUD, {"0/metric": {"name": metric, "benchmark_values": [1]}})

    assert next(iter(shown(found).values())) == shows


@pytest.fixture
def read_json(tmp_path):
    def read_text(text):
        (tmp_path / "json").write_text(text)
        return {name: each.values for name, each in read("json", tmp_path / "json").items()}

    return read_text


def test_every_number_of_a_document_has_its_path(read_json):
    document = {
        "loss": 0.25,
        "runs": [{"step time": 2, "ok": True, "note": "x"}, {"step time": 3, "left": None}],
        "times": [1, 2.5],
        "mixed": [1, "x"],
        "none": [],
    }

    assert read_json(json.dumps(document)) == {
        "loss": (0.25,),
        "runs_0_.step_time": (2.0,),
        "runs_1_.step_time": (3.0,),
        "times": (1.0, 2.5),
        "mixed_0_": (1.0,),
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", {"value": (3.0,)}),
        ("[1, 2]", {"value": (1.0, 2.0)}),
        (f'{{"a": NaN, "b": Infinity, "c": 1e999, "d": 1{"0" * 400}, "e": 1}}', {"e": (1.0,)}),
    ],
    ids=["a number", "a list", "no finite numbers"],
)
def test_a_document_is_read_for_its_finite_numbers(text, expected, read_json):
    assert read_json(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a b": 1, "a_b": 2}', "found 'a b' and 'a_b'"),
        ('{"a":' * 5000 + "1" + "}" * 5000, "expected JSON"),
    ],
    ids=["two of one name", "too many levels"],
)
def test_a_document_without_an_answer_is_refused(text, expected, read_json):
    with pytest.raises(ValueError, match=expected):
        read_json(text)


def test_a_table_finds_a_number_of_json_by_its_path(tmp_path):
    (tmp_path / "output").write_text('{"runs": [{"p50 ms": 7}], "all": [3, 5, 9]}')
    metrics = {
        "a_ms": {"kind": "time", "find": "runs[0].p50 ms"},
        "b_s": {"kind": "time", "find": "all"},
    }
    own = OwnMetrics("json", json.dumps(metrics))

    numbers = own.read_run([], tmp_path / "output", None)

    assert numbers == {"time.a_ms": 0.007, "time.b_s": 5.0}
