"""fleet.toml: what it says, and errors that name the file and the place."""

import pytest

from ci_perf.errors import InvalidFileError, UsageError
from ci_perf.fleet import fleet_file
from ci_perf.model.fleet import Expectation, FleetFile, NodeClass
from tests.runs import CPU, GPU

WHOLE = """
environment = ["OMP_PLACES"]
queue_s = 600

[engine.slurm]
options = ["--partition=gpu", "--exclusive"]

[engine.kubernetes]
image = "ghcr.io/us/perf@sha256:0123"
claim = "perf"
mount = "/perf"

[engine.command]
submit = ["bsub", "{script}"]
poll = ["poll"]
cancel = ["cancel"]

[class.h100]
select = "gpu:h100:1"
expect = { gpu_model = "NVIDIA H100 80GB HBM3", gpu_count = 1 }
nodes = 4

[class.l4]
gate = false
"""


def loaded(tmp_path, text):
    path = tmp_path / "fleet.toml"
    path.write_text(text)
    return fleet_file.load(path)


def test_the_whole_of_a_fleet_file_is_read(tmp_path):
    fleet = loaded(tmp_path, WHOLE)

    assert fleet.engine.slurm.options == ("--partition=gpu", "--exclusive")
    assert fleet.classes["h100"].nodes == 4
    assert fleet.classes["h100"].expect.gpu_count == 1
    assert not fleet.classes["l4"].gate


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[class.a]\nnodes = 0", r"fleet.toml: \$.class.a.nodes: expected int >= 1, found 0"),
        ("[class.a]\nnode = 1", r"\$.class.a: unknown key 'node'; did you mean 'nodes'\?"),
        ("[class]", r"\$.class: expected object of length >= 1"),
        ("queue_s = 5", r"\$: Object missing required field class"),
        ("queue_s = nan\n[class.a]", r"\$.queue_s: "),
        ("[class.a]\nslots = 1", r"'slots'; known: canary_limit, expect, gate, nodes, select"),
        ("[engine.local]\nslots = 1\n[class.a]", r"\$.engine.local: .*'slots'; none is known"),
        ("[engine.local]\nnodes = 1\n[class.a]", r"'nodes'; it belongs into another table"),
        ("[engine.slrm]\n[class.a]", r"\$.engine: unknown key 'slrm'; did you mean 'slurm'\?"),
        (
            '[engine.kubernetes]\nimage = "perf:latest"\nclaim = "c"\nmount = "/p"\n[class.a]',
            r"\$.engine.kubernetes: expected an image by its digest",
        ),
        ("[class.a]\nexpect = { gpus = 1 }", r"\$.class.a.expect: unknown key 'gpus'"),
        ('[class."a b"]', r"the key: expected str matching"),
        ("[[", "expected TOML, found"),
    ],
)
def test_an_error_names_the_file_the_place_and_what_was_found(tmp_path, text, error):
    with pytest.raises(InvalidFileError, match=error) as raised:
        loaded(tmp_path, text)

    assert str(raised.value).startswith(f"{tmp_path / 'fleet.toml'}: ")


def test_an_engine_needs_its_table(tmp_path):
    fleet = FleetFile(classes={"a": NodeClass()})

    with pytest.raises(UsageError, match=r"expected a table \[engine.command\], found none"):
        fleet_file.engine("command", fleet, path=tmp_path, folder=tmp_path, root=tmp_path)


def test_what_no_pod_would_find_is_refused(tmp_path):
    fleet = loaded(tmp_path, WHOLE)

    with pytest.raises(UsageError, match="--output: expected a folder below /perf"):
        fleet_file.engine("kubernetes", fleet, path=tmp_path, folder=tmp_path, root=tmp_path)


def test_a_slot_without_a_device_is_refused(tmp_path):
    fleet = FleetFile(classes={"a": NodeClass(select="0,1", nodes=3)})

    with pytest.raises(UsageError, match=r"/f.toml: \[class.a\]: .* of 3 nodes, found 2"):
        fleet_file.engine("local", fleet, path=tmp_path / "f.toml", folder=tmp_path, root=tmp_path)


def test_units_of_a_plan_find_their_class(tmp_path):
    alone = FleetFile(classes={"a": NodeClass()})
    two = FleetFile(classes={"h100": NodeClass(), "l4": NodeClass()})

    assert fleet_file.class_of(None, alone, path=tmp_path) == "a"
    assert fleet_file.class_of("l4", two, path=tmp_path) == "l4"
    with pytest.raises(UsageError, match="found units without a class"):
        fleet_file.class_of(None, two, path=tmp_path)
    with pytest.raises(UsageError, match="found units of class 'h10'; did you mean 'h100'"):
        fleet_file.class_of("h10", two, path=tmp_path)


@pytest.mark.parametrize(
    ("expectation", "machine", "difference"),
    [
        (Expectation(), GPU, ""),
        (Expectation(gpu_model="NVIDIA H200", gpu_count=1, mig=False), GPU, ""),
        (Expectation(gpu_count=8), GPU, "gpu_count: expected 8, found 1"),
        (Expectation(gpu_model="NVIDIA H200"), CPU, "expected 'NVIDIA H200', found None"),
        (Expectation(device="cpu", logical_cores=2), CPU, ""),
    ],
)
def test_what_is_expected_of_a_node_is_compared_with_what_it_is(expectation, machine, difference):
    assert expectation.difference(machine).endswith(difference)
    assert bool(expectation.difference(machine)) == bool(difference)
