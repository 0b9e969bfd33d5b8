"""Load clients: what a server served, and loads that say nothing of it."""

import json
import math
from pathlib import Path

import pytest

from ci_perf.features.formats import load_clients
from ci_perf.measuring.written_numbers import WrittenNumbers

FILES = Path(__file__).parent / "files"
VLLM = json.loads((FILES / "vllm.json").read_text())
GUIDELLM = json.loads((FILES / "guidellm-0.8.1.json").read_text())
AIPERF = json.loads((FILES / "aiperf-0.13.0.json").read_text())


def judged(readings):
    """Return the readings of a known kind: without the counts, which only a table may take."""
    return {name: each for name, each in readings.items() if each.kind}


def summarise(every):
    """Return the kind and the only value of each reading of a known kind."""
    readings = judged(every)
    values = {name: each.values for name, each in readings.items()}
    assert {len(each) for each in values.values()} == {1}
    return {name: (each.kind, pytest.approx(each.values[0])) for name, each in readings.items()}


@pytest.fixture
def read_vllm(tmp_path):
    def read_changed(**changed):
        path = tmp_path / "vllm.json"
        path.write_text(json.dumps({**VLLM, **changed}))
        return load_clients.read_vllm(path)

    return read_changed


def test_vllm_has_medians_tails_and_rates_in_base_units(read_vllm):
    assert judged(read_vllm()) == {
        "median_ttft_ms": WrittenNumbers(values=(0.05,), kind="time"),
        "median_tpot_ms": WrittenNumbers(values=(0.0115,), kind="time"),
        "median_itl_ms": WrittenNumbers(values=(0.011,), kind="time"),
        "p99_ttft_ms": WrittenNumbers(values=(0.09,), kind="tail"),
        "p99_tpot_ms": WrittenNumbers(values=(0.015,), kind="tail"),
        "p99_itl_ms": WrittenNumbers(values=(0.02,), kind="tail"),
        "request_throughput": WrittenNumbers(values=(20.0,), kind="rate"),
        "output_throughput": WrittenNumbers(values=(2000.0,), kind="rate"),
        "total_token_throughput": WrittenNumbers(values=(6000.0,), kind="rate"),
    }


def test_a_table_may_bound_the_requests_that_were_completed_or_failed(read_vllm):
    readings = read_vllm()

    assert readings["failed"] == WrittenNumbers(values=(0.0,))
    assert readings["completed"] == WrittenNumbers(values=(float(VLLM["completed"]),))


def test_vllm_has_the_time_of_a_request_if_it_was_asked_to(read_vllm):
    readings = read_vllm(median_e2el_ms=1200, p99_e2el_ms=1500)

    assert readings["median_e2el_ms"] == WrittenNumbers(values=(1.2,), kind="time")
    assert readings["p99_e2el_ms"] == WrittenNumbers(values=(1.5,), kind="tail")


def test_of_fewer_than_100_requests_there_is_no_tail(read_vllm):
    def kinds(completed):
        return {each.kind for each in judged(read_vllm(completed=completed)).values()}

    assert kinds(99) == {"time", "rate"}
    assert kinds(100) == {"time", "tail", "rate"}


def test_at_a_chosen_rate_throughput_is_the_load_and_not_the_server(read_vllm):
    readings = read_vllm(request_rate=20, request_throughput=19.2)

    assert {each.kind for each in judged(readings).values()} == {"time", "tail"}


@pytest.mark.parametrize("request_rate", ["inf", "trace", math.inf, None, 0])
def test_a_client_that_chose_no_rate_has_throughput(request_rate, read_vllm):
    assert "request_throughput" in read_vllm(request_rate=request_rate)


def test_a_saturated_server_is_said(read_vllm):
    with pytest.raises(
        ValueError, match=r"^the server is saturated: expected 4 requests/s, found 2\.1$"
    ):
        read_vllm(request_rate=4, request_throughput=2.1)


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
def test_a_short_run_is_not_called_saturated(completed, served, saturated, read_vllm):
    # 40 tokens at 11.5 ms, so that the last answer takes 0.45 s.
    changed = {
        "request_rate": 20,
        "completed": completed,
        "request_throughput": served,
        "total_output_tokens": 40 * completed,
    }
    if saturated:
        with pytest.raises(ValueError, match="saturated"):
            read_vllm(**changed)
    else:
        assert read_vllm(**changed)


def test_the_wait_in_the_queue_hides_no_saturation(read_vllm):
    with pytest.raises(ValueError, match="saturated"):
        read_vllm(request_rate=4, completed=1000, request_throughput=3, median_ttft_ms=40_000)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"failed": 3}, "expected no failed requests, found 3"),
        ({"completed": 0, "failed": 0}, "expected completed requests, found 0"),
        ({"completed": None}, "expected a number 'completed', found None"),
        ({"request_throughput": "x"}, "expected a number 'request_throughput', found 'x'"),
        (
            {name: 0 for name in VLLM if "_ms" in name or "throughput" in name},
            "expected times and rates above 0, found only 0",
        ),
        ({"median_tpot_ms": math.nan}, "median_tpot_ms: expected a finite number, found nan"),
    ],
)
def test_a_load_that_says_nothing_is_refused(changed, expected, read_vllm):
    with pytest.raises(ValueError, match=f"^{expected}$"):
        read_vllm(**changed)


def test_a_time_that_the_client_did_not_see_is_left_out(read_vllm):
    readings = read_vllm(median_tpot_ms=0, p99_tpot_ms=0)

    assert {"median_tpot_ms", "p99_tpot_ms"}.isdisjoint(readings)
    assert "median_ttft_ms" in readings


def test_an_older_vllm_has_failed_where_it_completed_less_than_it_was_asked(tmp_path):
    path = tmp_path / "vllm.json"
    older = {name: value for name, value in VLLM.items() if name != "failed"}
    path.write_text(json.dumps({**older, "completed": 199}))

    with pytest.raises(ValueError, match="expected no failed requests, found 1"):
        load_clients.read_vllm(path)


def test_of_sglang_the_last_run_counts():
    # The last one has 20 requests, too few for a tail.
    assert summarise(load_clients.read_sglang(FILES / "sglang-0.5.23.jsonl")) == {
        "median_ttft_ms": ("time", 0.04561451700010366),
        "median_tpot_ms": ("time", 0.005289752714280179),
        "median_itl_ms": ("time", 0.0037469254998541146),
        "median_e2e_latency_ms": ("time", 0.08216645549998702),
        "request_throughput": ("rate", 47.99199558782512),
        "input_throughput": ("rate", 959.8399117565025),
        "output_throughput": ("rate", 383.935964702601),
        "total_throughput": ("rate", 1343.7758764591035),
    }


def test_sglang_at_a_chosen_rate_has_times():
    assert summarise(load_clients.read_sglang(FILES / "sglang-0.5.23-rate.jsonl")) == {
        "median_ttft_ms": ("time", 0.03801919350007665),
        "median_tpot_ms": ("time", 0.004062344500019727),
        "median_itl_ms": ("time", 0.0034346119999781877),
        "median_e2e_latency_ms": ("time", 0.06764291299998604),
        "p99_ttft_ms": ("tail", 0.32314197990003106),
        "p99_tpot_ms": ("tail", 0.006387311792852871),
        "p99_itl_ms": ("tail", 0.011465676580105538),
        "p99_e2e_latency_ms": ("tail", 0.35614319608004746),
    }


def test_failed_requests_of_sglang_are_counted_by_their_errors():
    with pytest.raises(ValueError, match="expected no failed requests, found 11"):
        load_clients.read_sglang(FILES / "sglang-0.5.23-failed.jsonl")


@pytest.fixture
def read_guidellm(tmp_path):
    def read_changed(strategy, **totals):
        document = json.loads(json.dumps(GUIDELLM))
        benchmark = document["benchmarks"][0]
        benchmark["config"]["strategy"] = strategy
        benchmark["metrics"]["request_totals"].update(totals)
        path = tmp_path / "benchmarks.json"
        path.write_text(json.dumps(document))
        return load_clients.read_guidellm(path)

    return read_changed


def test_guidellm_has_medians_tails_and_mean_rates():
    assert summarise(load_clients.read_guidellm(FILES / "guidellm-0.8.1.json")) == {
        "request_latency": ("time", 0.09769415855407715),
        "time_to_first_token_ms": ("time", 0.05013704299926758),
        "time_per_output_token_ms": ("time", 0.01194852590560913),
        "inter_token_latency_ms": ("time", 0.00648151125226702),
        "request_latency.p99": ("tail", 0.12868928909301758),
        "time_to_first_token_ms.p99": ("tail", 0.07310700416564941),
        "time_per_output_token_ms.p99": ("tail", 0.015924066305160522),
        "inter_token_latency_ms.p99": ("tail", 0.010413169860839844),
        "requests_per_second": ("rate", 36.53280019789344),
        "output_tokens_per_second": ("rate", 292.2624015831475),
        "tokens_per_second": ("rate", 1059.4512057389093),
    }


def test_guidellm_at_a_chosen_rate_has_times():
    readings = load_clients.read_guidellm(FILES / "guidellm-0.8.1-rate.json")

    assert {each.kind for each in judged(readings).values()} == {"time", "tail"}
    assert readings["request_latency"].values == (0.07482171058654785,)


def test_several_benchmarks_of_guidellm_are_told_apart_by_their_rates():
    readings = load_clients.read_guidellm(FILES / "guidellm-0.8.1-two.json")

    assert {name.partition(".")[0] for name in readings} == {"constant_10", "constant_20"}
    assert "constant_10.time_to_first_token_ms" in readings


@pytest.mark.parametrize(
    ("rate", "totals", "expected"),
    [
        (60, {}, r"the server is saturated: expected 60 requests/s, found 37"),
        (None, {"errored": 2}, "expected no failed requests, found 2"),
        (None, {"successful": 0}, "expected completed requests, found 0"),
    ],
)
def test_a_load_of_guidellm_that_says_nothing_is_refused(rate, totals, expected, read_guidellm):
    with pytest.raises(ValueError, match=expected):
        read_guidellm({"type_": "poisson", "rate": rate}, **totals)


@pytest.fixture
def read_aiperf(tmp_path):
    def read_changed(**changed):
        path = tmp_path / "profile_export_aiperf.json"
        path.write_text(json.dumps({**AIPERF, **changed}))
        return load_clients.read_aiperf(path)

    return read_changed


def test_aiperf_has_medians_tails_and_mean_rates(read_aiperf):
    readings = read_aiperf()

    assert {name: each.kind for name, each in judged(readings).items()} == {
        "request_latency": "time",
        "time_to_first_token": "time",
        "inter_token_latency": "time",
        "request_latency.p99": "tail",
        "time_to_first_token.p99": "tail",
        "inter_token_latency.p99": "tail",
        "request_throughput": "rate",
        "output_token_throughput": "rate",
        "total_token_throughput": "rate",
    }
    assert summarise(readings)["time_to_first_token"] == (
        "time",
        AIPERF["time_to_first_token"]["p50"] / 1000,
    )


def test_aiperf_at_a_chosen_rate_has_times():
    assert summarise(load_clients.read_aiperf(FILES / "aiperf-0.13.0-rate.json")) == {
        "request_latency": ("time", 0.058590261),
        "time_to_first_token": ("time", 0.034665788),
        "inter_token_latency": ("time", 0.001043888456521739),
        "request_latency.p99": ("tail", 0.07384894233),
        "time_to_first_token.p99": ("tail", 0.04390578035),
        "inter_token_latency.p99": ("tail", 0.0014529971391304348),
    }


def test_failed_requests_of_aiperf_are_counted():
    with pytest.raises(ValueError, match="expected no failed requests, found 10"):
        load_clients.read_aiperf(FILES / "aiperf-0.13.0-failed.json")


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"is_complete": False}, "expected a complete run, found one that was cancelled"),
        ({"was_cancelled": True}, "expected a complete run, found one that was cancelled"),
        ({"request_count": None}, "expected completed requests, found 0"),
        (
            {"input_config": {"phases": [{"kind": "profiling", "rate": 200}]}},
            "the server is saturated: expected 200 requests/s",
        ),
    ],
)
def test_a_load_of_aiperf_that_says_nothing_is_refused(changed, expected, read_aiperf):
    with pytest.raises(ValueError, match=expected):
        read_aiperf(**changed)
