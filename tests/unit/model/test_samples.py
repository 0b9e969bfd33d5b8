import json

import pytest

from ci_perf.errors import InvalidFileError
from ci_perf.model import codec, metrics
from ci_perf.model.samples import KNOWN, SampledMetric, Samples


def a_workload(**more):
    return {
        "workload": "search",
        "metric": {"unit": "s", "kind": "time"},
        "history": [[0.1, [0.1, 0.2]]],
        "head": [0.1],
        "pairs": [[0.1, [0.1]]],
    } | more


def read(*workloads):
    return codec.decode(json.dumps({"workloads": workloads}), Samples, name="samples.json")


def test_a_launch_is_a_number_or_the_values_of_its_steps():
    (found,) = read(a_workload()).workloads

    assert found.history == ((0.1, (0.1, 0.2)),)
    assert found.pairs == ((0.1, (0.1,)),)


def test_what_is_written_is_read():
    samples = read(a_workload(), a_workload(workload="other", history=[], pairs=[]))

    assert codec.decode(codec.encode(samples), Samples, name="samples.json") == samples


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"history": [[]]}, r"workloads\[0\]\.history\[0\]: expected array of length >= 1"),
        ({"head": [[0.1] * 100_001]}, r"head\[0\]: expected array of length <= 100000"),
        ({"pairs": [[0.1]]}, r"pairs\[0\]: expected array of length 2"),
        ({"head": [-1.0]}, r"head\[0\]: expected float >= 0.0, found -1.0"),
        ({"head": [1e300]}, r"head\[0\]: expected float <= 1e\+19"),
        ({"head": ["1"]}, r"head\[0\]: expected .*, found str"),
        ({"head": [[0.1, 0]]}, r"workloads\[0\]: head\[0\]\[1\]: .* >= 1e-12 .*'time', found 0.0"),
        ({"history": [[0]]}, r"workloads\[0\]: history\[0\]\[0\]: .* found 0.0"),
        ({"history": [], "head": [], "pairs": []}, r"expected launches of 'search', found none"),
        ({"metric": {"unit": "s", "kind": "exact"}}, r"metric: expected one of: .*; found exact"),
        ({"heads": []}, r"workloads\[0\]: unknown key 'heads'; did you mean 'head'\?"),
        ({"workload": "a b"}, r"workload: .*regex"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(change, message):
    with pytest.raises(InvalidFileError, match=rf"^samples\.json: .*{message}"):
        read(a_workload(**change))


def test_a_number_that_json_lacks_is_refused():
    text = json.dumps({"workloads": [a_workload(head=[float("nan")])]})

    with pytest.raises(InvalidFileError, match=r"^samples\.json: "):
        codec.decode(text, Samples, name="samples.json")


def test_a_metric_of_a_workload_that_appears_twice_is_refused():
    rate = a_workload(metric={"unit": "1/s", "direction": "higher", "kind": "time"})

    with pytest.raises(InvalidFileError, match="'search' appears twice with metric 'step_time_s'"):
        read(a_workload(), rate)


def test_a_workload_may_have_several_metrics():
    memory = a_workload(metric={"unit": "byte", "kind": "host_memory"})

    assert len(read(a_workload(), memory).workloads) == 2


def test_what_is_exact_may_be_zero():
    counted = a_workload(metric={"unit": "count", "kind": "exact"}, head=[0, [0, 1]])

    assert read(counted).workloads[0].head == (0.0, (0.0, 1.0))


@pytest.mark.parametrize(("kind", "unit", "direction"), KNOWN)
def test_every_metric_has_the_direction_that_reports_show(kind, unit, direction):
    """A rate per second is shown as a time, of which less is better."""
    found = SampledMetric(kind=kind, unit=unit, direction=direction).known()

    assert found.better.value == ("lower" if unit == "1/s" else direction)
    assert found.unit.value == ("s" if unit == "1/s" else unit)


def test_names_that_are_not_ours_are_no_metric_of_a_run():
    assert {one.name for one in KNOWN.values()} - metrics.BY_NAME.keys() == {"count"}
