"""What a run must not say: pairs of which nobody could tell whose they are, or against what."""

import msgspec
import pytest

from ci_perf.errors import InvalidFileError
from ci_perf.model import codec
from ci_perf.model.run import Earlier, Paired, Run
from tests.histories import in_turns, pairs
from tests.runs import STEADY, a_measured, a_run


def read(run):
    return codec.decode(codec.encode(run), Run, name="run.json")


def test_a_run_with_pairs_is_read_as_it_was_written():
    run = in_turns(a_run(a_measured("w", *STEADY)), pairs(1.1))

    assert read(run) == run


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"interleaved": None}, "expected interleaved to name the base"),
        ({"measured": ()}, "expected measured workloads, each once"),
    ],
)
def test_pairs_of_nobody_are_refused(changed, message):
    run = in_turns(a_run(a_measured("w", *STEADY)), pairs(1.1))
    text = codec.encode(run)
    document = msgspec.json.decode(text) | changed

    with pytest.raises(InvalidFileError, match=message):
        codec.decode(msgspec.json.encode(document).decode(), Run, name="run.json")


def test_pairs_of_one_workload_stand_in_one_place():
    once = in_turns(a_run(a_measured("w", *STEADY)), pairs(1.1))
    document = msgspec.json.decode(codec.encode(once))
    document["paired"] *= 2

    with pytest.raises(InvalidFileError, match="once"):
        codec.decode(msgspec.json.encode(document).decode(), Run, name="run.json")


def test_more_pairs_of_an_earlier_run_than_there_can_be_are_refused():
    paired = Paired(workload="w", pairs=tuple(pairs(1.0, count=19)))

    with pytest.raises(ValueError, match=r"w: expected at most 18 pairs, found 19"):
        Earlier(run="0" * 12, started_at="", check=1, suspects=1, said={}, paired=(paired,))


@pytest.mark.parametrize(
    ("threads", "knobs", "said"),
    [
        (4, {"cpus": "0-1"}, "4"),
        ("own", {"cpus": "0-3,8"}, "own (CPUs=5)"),
        ("own", {"cpus": "7", "OMP_NUM_THREADS": "2"}, "own (CPUs=1, OMP_NUM_THREADS=2)"),
        ("own", {}, ""),
        ("own", {"cpus": "no range"}, ""),
    ],
)
def test_threads_of_the_environment_are_its_cpus_and_variables(threads, knobs, said):
    measured = a_measured("it", 1.0, knobs=knobs)
    protocol = msgspec.structs.replace(measured.protocol, threads=threads)

    assert msgspec.structs.replace(measured, protocol=protocol).describe_threads() == said
