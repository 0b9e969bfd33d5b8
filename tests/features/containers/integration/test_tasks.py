"""What a task is given in a container, what is kept for the next one, and what is seen of it."""

import gzip
import subprocess

import msgspec
import pytest

from ci_perf.features.containers import launch
from ci_perf.features.containers.launch import ContainerSide, Settings, images, mounts, stale
from ci_perf.features.containers.launch.arguments import OWNER_LABEL, RUN_LABEL
from ci_perf.launch.local import LocalLauncher
from ci_perf.model.task import TRACE, MachineDescription, TaskFailure
from ci_perf.system import linux
from tests.features.containers.helpers import benches
from tests.features.containers.helpers.benches import BOTH, SMALL, Bench
from tests.launches import BUILD, GOOD, HEAD, result_of

pytestmark = pytest.mark.container

WORKING = HEAD + "def step():\n    sum(range(1000))\n" + BUILD
# Says what its folders of compiled code hold, and leaves something there.
CACHED = """
import os
from pathlib import Path
places = [Path(os.environ[f"{name}_CACHE_DIR"]) for name in ("TORCHINDUCTOR", "TRITON")]
found = [sorted(file.name for file in place.glob("*")) for place in places]
for place in places:
    place.mkdir(parents=True, exist_ok=True)
    (place / Path(__file__).stem).touch()
report(found)
"""
# Says what there is in a folder, and leaves something there.
KEEPING = """
import os
def noted(folder):
    found = sorted(os.listdir(folder))
    open(f"{folder}/{len(found)}", "w").close()
    return found
"""


# Waits, and does what a side does.
PROFILED = f"""{HEAD}
import time
import torch
def wait():
    time.sleep(0.002)
def step():
    wait()
    {{line}}
{BUILD}"""


@BOTH
def test_a_workload_is_measured_and_nothing_of_its_container_is_left(bench):
    (bench.root / "my_model.py").write_text("def step():\n    pass\n")
    result = result_of(bench.launch(HEAD + "from my_model import step\n" + BUILD))

    assert result.process.timed.block_s
    assert bench.left() == []


def test_a_workload_that_is_not_of_the_checkout_finds_both(bench, tmp_path):
    suite = benches.folder(tmp_path / "suite")
    (suite / "neighbour.py").write_text(
        "def step():\n    measured()\nfrom measured import measured"
    )
    (bench.root / "measured.py").write_text("def measured():\n    pass\n")

    assert result_of(bench.launch(HEAD + "from neighbour import step\n" + BUILD, suite=suite))


@BOTH
def test_the_monitor_of_the_host_sees_of_it_what_it_sees_of_a_child(bench):
    task = bench.task(WORKING, protocol={"monitor_hz": 20, "timed_min_s": 0.2, "timed_max_s": 0.5})
    here, there = (
        result_of(launcher.launch(task)).process.evidence
        for launcher in (LocalLauncher(bench.root), bench.launcher)
    )

    assert (here.trouble, there.trouble) == ("", "")
    assert there.host_rss_peak_bytes > 2**20
    assert there.host.wall_s > 0
    assert None not in (here.host.cpu_s, there.host.cpu_s)
    assert _known(there.host) >= _known(here.host)


def _known(evidence):
    return {name for name, value in msgspec.structs.asdict(evidence).items() if value is not None}


def test_data_that_nobody_has_given_stays_from_task_to_task(bench):
    look = KEEPING + "report(noted('/data'))\n"

    assert [bench.facts(look, name=name) for name in ("one", "two")] == [[], ["0"]]


def test_data_is_read_and_checkpoints_are_written_where_their_owner_has_them(request, tmp_path):
    data, there = benches.folder(tmp_path / "data"), benches.folder(tmp_path / "checkpoints")
    (data / "set").write_text("some data")
    there.chmod(0o777)
    given = benches.of(request, "docker", tmp_path / "given", data=data, checkpoints=there)
    source = (
        "from pathlib import Path\nsaid = None\n"
        "def build(context):\n"
        "    Path('/checkpoints/one').write_text('weights')\n"
        "    report([context.data_dir, Path(context.data_dir, 'set').read_text()])\n"
    )

    assert given.facts(source) == ["/data", "some data"]
    assert (there / "one").read_text() == "weights"
    assert list((given.kept / "data").iterdir()) == []


def test_compiled_code_of_a_workload_on_one_side_is_kept_for_that_alone(request, bench, tmp_path):
    other = benches.folder(tmp_path / "other")
    both = benches.of(request, bench.engine.name, tmp_path / "both", sides=[other])
    first, second, renamed, of_other = (
        both.facts(CACHED, **which) for which in ({}, {}, {"name": "renamed"}, {"root": other})
    )

    assert (first, second) == ([[], []], [["it"], ["it"]])
    assert (renamed, of_other) == ([[], []], [[], []])


def test_what_is_kept_goes_with_the_launcher(bench):
    settings = Settings(engine=bench.engine, limits=SMALL, gpu_access="gpus")
    sides = [ContainerSide(root=bench.root, image=bench.image)]
    with launch.launcher(sides, settings, run=f"{bench.run}k", say=print) as launcher:
        folder = launcher._folder
        result_of(launcher.launch(bench.task(GOOD)))
        assert list(folder.iterdir())

    assert not folder.exists()


@BOTH
def test_what_a_killed_ci_perf_has_left_is_removed_by_the_next(bench):
    with subprocess.Popen(["sleep", "600"]) as process:
        gone = stale.owner(process.pid)
        process.kill()
    owners = {"gone": gone, "ours": stale.owner(), "foreign": gone.replace(".", ".1", 1)}
    # What is not called as ours are has its label from an image: that of somebody else.
    owners["unnamed"] = gone
    names = {"gone": "-1001", "ours": "-1002", "foreign": "-1003", "unnamed": "-of-somebody-else"}
    names = {whose: f"ci-perf-{bench.run}{end}" for whose, end in names.items()}
    made = {
        whose: bench.engine.must(
            *("create", "--label", f"{OWNER_LABEL}={owner}"),
            *("--label", f"{RUN_LABEL}={bench.run}", "--name", names[whose]),
            *(bench.image.config, "true"),
        )
        for whose, owner in owners.items()
    }
    settings = Settings(engine=bench.engine, limits=SMALL, gpu_access="gpus")
    try:
        with launch.launcher([], settings, run=bench.run, say=bench.said.append):
            left = bench.left()
    finally:
        for identity in made.values():
            stale.remove(bench.engine, identity)

    assert sorted(left) == sorted(names[whose] for whose in ("foreign", "ours", "unnamed"))
    assert [made["gone"][:12] in said for said in bench.said] == [True]


@pytest.fixture(scope="module")
def other_side(tmp_path_factory):
    return benches.folder(tmp_path_factory.mktemp("sides") / "other")


@pytest.fixture(scope="module")
def of_torch(docker, torch_image, tmp_path_factory, other_side):
    return Bench(tmp_path_factory.mktemp("torch"), docker, torch_image, sides=[other_side])


def test_a_side_is_profiled_in_a_container_as_in_a_child(of_torch, other_side, tmp_path):
    source = PROFILED.format(line="torch.ones(100).double()")
    kept = tmp_path / "it.pt.trace.json.gz"
    task = of_torch.task(source, root=other_side)
    task = msgspec.structs.replace(task, trace_to=str(kept))
    here, there = (
        result_of(launcher.profile(task))
        for launcher in (LocalLauncher(other_side), of_torch.launcher)
    )

    assert (there.missing, there.absent) == ({}, "")
    assert [msgspec.structs.replace(use, call_s=None) for use in there.operators] == [
        msgspec.structs.replace(use, call_s=None) for use in here.operators
    ]
    assert all(use.call_s for use in there.operators)
    (wait,) = [use for use in there.functions if use.function.function == "wait"]
    assert wait.function.file == "it.py"
    assert there.trace_file == kept.name
    text = gzip.decompress(kept.read_bytes()).decode()
    assert "ProfilerStep#" in text
    assert mounts.WORKSPACE not in text


def test_what_a_launch_leaves_for_people_is_put_at_its_place(bench, tmp_path):
    """Its container knows neither the place nor its folder; here the step itself leaves files."""
    source = f"{WORKING}\nopen('{mounts.OUT}/{TRACE}', 'w').write('traced')\n"
    place = tmp_path / "it.head.gz"
    task = msgspec.structs.replace(bench.task(source), trace_to=str(place))

    profile = result_of(bench.launcher.profile(task))

    assert (profile.trace_file, place.read_text()) == ("it.head.gz", "traced")


def test_a_machine_is_described_as_by_a_child_with_the_image_and_this_host(of_torch):
    found = of_torch.launcher.describe("auto", 1, 1)
    here = LocalLauncher(of_torch.root).describe("auto", 1, 1)
    assert isinstance(found, MachineDescription), found
    assert isinstance(here, MachineDescription), here
    environment = found.environment

    assert (found.device, found.locks) == (here.device, here.locks)
    assert environment.hard == here.environment.hard
    assert environment.image == of_torch.image
    assert environment.soft.image == images.name_for_comparison(of_torch.image)
    assert environment.noted.host_hash == linux.name_hash()


def test_the_canaries_sing_in_a_container(of_torch):
    seconds = of_torch.launcher.canaries("cpu", 1)

    assert not isinstance(seconds, TaskFailure), seconds.reason
    assert set(seconds) >= {"matmul_random", "memory_copy"}
    assert all(value > 0 for value in seconds.values())
