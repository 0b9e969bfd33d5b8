"""Clients that put load on a server of a model: vLLM, SGLang, GuideLLM, AIPerf.

A server that could not serve what was asked of it is refused, because its times are those of a
queue.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ci_perf.features.formats import documents
from ci_perf.features.formats.documents import Named
from ci_perf.measuring.written_numbers import WrittenNumbers
from ci_perf.model.metrics import OwnKind

# Of fewer requests than these, the 99th percentile is the slowest one.
_LEAST_FOR_P99 = 100
# Less than this share of the requests that were asked for: the server is saturated.
_SERVED = 0.9
# So many standard deviations later than on average, the last request of a Poisson process is sent.
_DEVIATIONS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Load:
    """What a client did and saw. Times in seconds, rates per second, by the client's names.

    ``asked`` is the rate of requests, or none where the client sent as many as the server took.
    ``decoding_s`` is the median time from the first token of a request to its last one.
    """

    completed: float
    failed: float
    asked: float | None
    served: float
    decoding_s: float
    medians: Mapping[str, float]
    tails: Mapping[str, float]
    rates: Mapping[str, float]


def _read_load(load: _Load) -> Iterator[Named]:
    """Return the numbers of the server. Raises ValueError where these are none."""
    _check_load(load)
    for name, count in (("completed", load.completed), ("failed", load.failed)):
        yield name, WrittenNumbers(values=(count,))
    # A client that has not streamed writes 0: it saw no first token.
    kinds: list[tuple[OwnKind, Mapping[str, float]]] = [("time", load.medians)]
    if load.completed >= _LEAST_FOR_P99:
        kinds.append(("tail", load.tails))
    if load.asked is None:  # otherwise the client has chosen them
        kinds.append(("rate", load.rates))
    for kind, values in kinds:
        for name, value in values.items():
            if value:
                yield name, WrittenNumbers(values=(value,), kind=kind)


def _check_load(load: _Load) -> None:
    if load.failed:
        raise ValueError(f"expected no failed requests, found {load.failed:g}")
    if not load.completed:
        raise ValueError("expected completed requests, found 0")
    if not any((*load.medians.values(), *load.rates.values())):
        raise ValueError("expected times and rates above 0, found only 0")
    if load.asked is not None and load.served < _SERVED * _most_served(load, load.asked):
        raise ValueError(
            f"the server is saturated: expected {load.asked:g} requests/s, found {load.served:.2g}"
        )


def _most_served(load: _Load, asked: float) -> float:
    """Return the rate of requests that a client sees at a server with time to spare.

    It is less than ``asked``, above all in a short run: the client draws the times between its
    requests at random, and waits for the last answers. AIPerf sees 17/s of 120 requests at 20/s.
    The time to the first token is no part of it: at a saturated server it is that of the queue.
    """
    sending_s = (load.completed + _DEVIATIONS * math.sqrt(load.completed)) / asked
    return load.completed / (sending_s + load.decoding_s)


# --- vLLM and SGLang: one flat object, the second has grown from the first

_QUANTITIES = ("ttft", "tpot", "itl", "e2el", "e2e_latency")
_RATES = ("request", "input", "output", "total", "total_token", "input_sequence")


def read_vllm(path: Path) -> dict[str, WrittenNumbers]:
    """Read the file of `vllm bench serve --save-result`. Raises ValueError."""
    document = documents.parse(documents.read_text(path), dict[str, object])
    return documents.collect(_read_load(_read_flat(document)))


def read_sglang(path: Path) -> dict[str, WrittenNumbers]:
    """Read the last line of `python -m sglang.bench_serving --output-file`. Raises ValueError.

    Each run appends a line. It counts failed requests only with `--output-details`.
    """
    last = documents.read_text(path).strip().splitlines()[-1]
    document = documents.parse(last, dict[str, object])
    return documents.collect(_read_load(_read_flat(document)))


def _read_flat(document: Mapping[str, object]) -> _Load:
    numbers = {name: value for name, value in document.items() if isinstance(value, float)}
    for name in ("completed", "request_throughput"):
        if name not in numbers:
            raise ValueError(f"expected a number {name!r}, found {document.get(name)!r}")
    medians = _find_numbers(document, [f"median_{each}_ms" for each in _QUANTITIES])
    tokens = numbers.get("total_output_tokens", 0.0) / max(numbers["completed"], 1)
    return _Load(
        completed=numbers["completed"],
        failed=_count_failed(document, numbers),
        asked=_find_rate(numbers.get("request_rate")),
        served=numbers["request_throughput"],
        decoding_s=medians.get("median_tpot_ms", 0.0) * max(tokens - 1, 0),
        medians=medians,
        tails=_find_numbers(document, [f"p99_{each}_ms" for each in _QUANTITIES]),
        rates=_find_numbers(document, [f"{each}_throughput" for each in _RATES]),
    )


def _count_failed(document: Mapping[str, object], numbers: Mapping[str, float]) -> float:
    """Count by the first that the file has: a number, texts of errors, requests that were asked."""
    if "failed" in numbers:
        return numbers["failed"]
    errors = document.get("errors")
    if isinstance(errors, list):
        return sum(1.0 for error in errors if error)
    return numbers.get("num_prompts", numbers["completed"]) - numbers["completed"]


def _find_rate(asked: float | None) -> float | None:
    """Return a rate that somebody chose: without one, clients write infinity or a word."""
    return asked if asked is not None and 0 < asked < math.inf else None


# --- GuideLLM: `--output kind=json,path=FILE` of `guidellm run`

_GUIDELLM_TIMES = (
    "request_latency",
    "time_to_first_token_ms",
    "time_per_output_token_ms",
    "inter_token_latency_ms",
)
_GUIDELLM_RATES = ("requests_per_second", "output_tokens_per_second", "tokens_per_second")


class _GuidellmStrategy(msgspec.Struct):
    type_: str
    rate: float | None = None
    streams: float | None = None


class _GuidellmConfig(msgspec.Struct):
    strategy: _GuidellmStrategy


class _GuidellmBenchmark(msgspec.Struct):
    config: _GuidellmConfig
    metrics: dict[str, object]


class _GuidellmFile(msgspec.Struct):
    benchmarks: list[_GuidellmBenchmark]


def read_guidellm(path: Path) -> dict[str, WrittenNumbers]:
    """Read every benchmark of a file. Raises ValueError.

    The metrics of several begin with the strategy and its rate or its number of streams.
    """
    benchmarks = documents.parse(documents.read_text(path), _GuidellmFile).benchmarks
    readings: list[Named] = []
    for benchmark in benchmarks:
        strategy = benchmark.config.strategy
        level = strategy.rate or strategy.streams
        prefix = f"{strategy.type_}_{level:g}." if level else f"{strategy.type_}."
        readings += [
            (prefix + name if len(benchmarks) > 1 else name, reading)
            for name, reading in _read_load(_read_guidellm_load(benchmark))
        ]
    return documents.collect(readings)


def _read_guidellm_load(benchmark: _GuidellmBenchmark) -> _Load:
    metrics = benchmark.metrics
    medians = _find_numbers(metrics, _GUIDELLM_TIMES, "successful", "median")
    tails = _find_numbers(metrics, _GUIDELLM_TIMES, "successful", "percentiles", "p99")
    rates = _find_numbers(metrics, _GUIDELLM_RATES, "successful", "mean")
    counts = _find_numbers(metrics.get("request_totals"), ("successful", "errored"))
    return _Load(
        completed=counts.get("successful", 0.0),
        failed=counts.get("errored", 0.0),
        asked=_find_rate(benchmark.config.strategy.rate),
        served=rates.get("requests_per_second", 0.0),
        decoding_s=_subtract(medians, "request_latency", "time_to_first_token_ms"),
        medians=medians,
        tails={f"{name}.p99": value for name, value in tails.items()},
        rates=rates,
    )


def _find_numbers(document: object, names: Iterable[str], *below: str) -> dict[str, float]:
    """Return `name.below`, such as `ttft_ms.successful.median`, of every name with this number.

    What is named in ms is returned in seconds.
    """
    numbers: dict[str, float] = {}
    for name in names:
        value = document
        for key in (name, *below):
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, float):
            numbers[name] = value / 1e3 if name.endswith("_ms") else value
    return numbers


def _subtract(numbers: Mapping[str, float], whole: str, part: str) -> float:
    return max(numbers.get(whole, 0.0) - numbers.get(part, 0.0), 0.0)


# --- AIPerf: `profile_export_aiperf.json` of `aiperf profile`

_AIPERF_TIMES = ("request_latency", "time_to_first_token", "inter_token_latency")
_AIPERF_RATES = ("request_throughput", "output_token_throughput", "total_token_throughput")


class _AiperfPhase(msgspec.Struct):
    kind: str = ""
    rate: float | None = None


class _AiperfConfig(msgspec.Struct):
    phases: list[_AiperfPhase] = []


class _AiperfFile(msgspec.Struct):
    input_config: _AiperfConfig
    was_cancelled: bool | None = None
    is_complete: bool | None = None


def read_aiperf(path: Path) -> dict[str, WrittenNumbers]:
    """Read the file of one run, whose times are in ms. Raises ValueError."""
    document = documents.parse(documents.read_text(path), dict[str, object])
    file = documents.convert(document, _AiperfFile)
    if file.was_cancelled or file.is_complete is False:
        raise ValueError("expected a complete run, found one that was cancelled")
    return documents.collect(_read_load(_read_aiperf_load(document, file.input_config)))


def _read_aiperf_load(document: Mapping[str, object], config: _AiperfConfig) -> _Load:
    medians_ms = _find_numbers(document, _AIPERF_TIMES, "p50")
    tails_ms = _find_numbers(document, _AIPERF_TIMES, "p99")
    rates = _find_numbers(document, _AIPERF_RATES, "avg")
    counts = _find_numbers(document, ("request_count", "error_request_count"), "avg")
    asked = [phase.rate for phase in config.phases if phase.kind == "profiling"]
    return _Load(
        completed=counts.get("request_count", 0.0),
        failed=counts.get("error_request_count", 0.0),
        asked=_find_rate(asked[0] if asked else None),
        served=rates.get("request_throughput", 0.0),
        decoding_s=_subtract(medians_ms, "request_latency", "time_to_first_token") / 1e3,
        medians={name: value / 1e3 for name, value in medians_ms.items()},
        tails={f"{name}.p99": value / 1e3 for name, value in tails_ms.items()},
        rates=rates,
    )
