"""What a harness cannot have written is refused before anything is made of it."""

import json
import tracemalloc

import pytest

from ci_perf.errors import InvalidFileError
from ci_perf.features.interchange import importers
from ci_perf.features.interchange.importers import Benchmark, Reading
from ci_perf.model.samples import MAX_WORKLOADS, Sampled, SampledMetric, Samples


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ([["a", "b"]] * 40, "expected 1099511627776 results, .* found 1"),
        ([["a" * 20_000]], "expected a name of at most 10,000 characters .* found 20,00"),
    ],
)
def test_parameters_of_asv_are_counted_before_anything_is_made_of_them(params, match, tmp_path):
    """481 bytes would become 2^40 names."""
    file = {
        "version": 2,
        "result_columns": ["result", "params"],
        "results": {"time_a": [[1.0], params]},
    }
    path = tmp_path / "x.json"
    path.write_text(json.dumps(file))
    tracemalloc.start()
    try:
        with pytest.raises(InvalidFileError, match=match):
            importers.read("asv", path)
        assert tracemalloc.get_traced_memory()[1] < 100 * 2**20
    finally:
        tracemalloc.stop()


def measured(*benchmarks):
    metric = SampledMetric(unit="s", kind="time")
    return Reading(
        benchmarks=tuple(
            Benchmark(name=name, metric=metric, launches=(tuple(times),))
            for name, times in benchmarks
        )
    )


MANY = measured(*((f"b{i}", [1.0]) for i in range(MAX_WORKLOADS + 1)))


@pytest.mark.parametrize(
    ("reading", "heads", "match"),
    [
        (measured(("a", [1.0] * 100_001)), 1, r"^a: \$\.history.*length <= 100000"),
        (MANY, 1, "expected at most 10,000 workloads in all files together, found 10,001"),
        (measured(("a", [1.0])), 1_001, r"^a: \$\.head.*length <= 1000"),
    ],
    ids=["steps", "workloads", "launches"],
)
def test_what_a_harness_wrote_has_the_bounds_of_samples(reading, heads, match):
    with pytest.raises(InvalidFileError, match=match):
        importers.merge([reading], [reading] * heads)


COLUMN = '{"version": 2, "result_columns": ["\\ud83d"], "results": {"time_a": [[1.0]]}}'


@pytest.mark.parametrize("tool", ["pyperf", "torch", "asv", "pytest-benchmark"])
@pytest.mark.parametrize("text", ['[{"\\ud83d": 1}]', '{"\\ud83d": 1}', COLUMN])
def test_half_a_character_is_refused(tool, text, tmp_path):
    """JSON can spell one half of a pair of surrogates, and no UTF-8 can hold it."""
    path = tmp_path / "x.json"
    path.write_text(text)

    with pytest.raises(InvalidFileError, match=r"x\.json: expected"):
        importers.read(tool, path)


def test_files_that_hold_too_much_together_are_refused():
    metric = SampledMetric(unit="s", kind="time")
    numbers = range(MAX_WORKLOADS // 2 + 1)
    files = [
        (side, Samples(workloads=tuple(one_of(f"{side}{number}", metric) for number in numbers)))
        for side in ("a", "b")
    ]

    with pytest.raises(InvalidFileError, match=r"at most 10,000 workloads .* found 10,002"):
        importers.join(files)


def one_of(name, metric):
    return Sampled(workload=name, metric=metric, head=(1.0,))
