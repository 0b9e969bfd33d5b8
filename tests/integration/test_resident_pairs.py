"""Two processes that are there at once, and of which one runs at any time: for real."""

import itertools
import json
from pathlib import Path

import msgspec
import pytest

from ci_perf.launch import local
from ci_perf.launch.local import LocalLauncher
from ci_perf.measuring.monitor import nvml
from ci_perf.model.process import Phase
from ci_perf.model.task import MachineDescription
from tests import residents
from tests.launches import BUILD, GOOD, HEAD, failure_of, result_of
from tests.processes import is_alive
from tests.residents import JUNK

NOTING = residents.noting('open("steps.json", "w").write(json.dumps(steps))')


def watched(task):
    """Return the task with a monitor beside it."""
    protocol = msgspec.structs.replace(task.workload.protocol, monitor_hz=20)
    workload = msgspec.structs.replace(task.workload, protocol=protocol)
    return msgspec.structs.replace(task, workload=workload)


@pytest.mark.story
def test_of_a_resident_pair_one_process_runs_at_any_time_in_as_many_turns(pair, tmp_path):
    outcomes = pair(HEAD + NOTING, HEAD + NOTING, timed_min_blocks=20, timed_max_s=15.0)

    blocks = [len(result_of(outcome).process.timed.block_s) for outcome in outcomes]
    steps = sorted(
        (*step, name)
        for name in ("first", "second")
        for step in json.loads((tmp_path / name / "steps.json").read_text())
    )
    turns = [name for name, _ in itertools.groupby(name for *_, name in steps)]
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(steps))
    assert blocks[0] == blocks[1] >= 20
    assert len(turns) > 20


def test_the_first_process_of_a_resident_pair_is_the_first_in_each_phase(pair, tmp_path):
    note = f"open({str(tmp_path / 'order')!r}, 'a').write"
    source = (
        f"from pathlib import Path\n{note}(Path.cwd().name + ' imports\\n')\n"
        f"def step():\n    pass\n"
        f"def build(context):\n    {note}(Path.cwd().name + ' builds\\n')\n"
        "    return Workload(step=step)\n"
    )

    for outcome in pair(HEAD + source, HEAD + source):
        result_of(outcome)

    order = (tmp_path / "order").read_text().splitlines()
    assert sorted(order[:2]) == ["first imports", "second imports"]  # at once
    assert order[2:] == ["first builds", "second builds"]


def test_what_a_process_has_started_stands_still_while_its_partner_runs(pair, tmp_path):
    """As the workers of a data loader do, which would fetch ahead otherwise."""
    counter = str(tmp_path / "counter")
    fetching = residents.fetching(counter, begin="if os.fork() == 0:\n    work_ahead()")
    watching = residents.watching(counter)

    for outcome in pair(HEAD + fetching + BUILD, HEAD + watching):
        result_of(outcome)


RAISING = HEAD + "def step():\n    raise ValueError('no')\n" + BUILD


@pytest.mark.parametrize(
    ("bad", "phase", "is_first"),
    [
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", Phase.IMPORT, True),
        ("import os\nos._exit(0)\n", Phase.IMPORT, False),
        (RAISING, Phase.FIRST_STEP, True),
        (RAISING, Phase.FIRST_STEP, False),
        (JUNK, Phase.IMPORT, True),
        (JUNK, Phase.IMPORT, False),
    ],
)
def test_a_process_whose_partner_fails_goes_on(pair, bad, phase, is_first):
    outcomes = pair(bad, GOOD) if is_first else pair(GOOD, bad)

    failed, other = outcomes if is_first else outcomes[::-1]
    assert failure_of(failed).phase is phase
    assert result_of(other).process.timed.stopped != "partner"


def test_a_process_whose_partner_dies_between_two_blocks_goes_on(pair):
    dying = """
import os, signal, sys, time
from pathlib import Path
phase = Path(sys.argv[1], "phase")
timed = 0
def step():
    global timed
    time.sleep(0.002)
    timed += phase.read_text() == "timed"
    if timed == 7:
        os.kill(os.getpid(), signal.SIGKILL)
"""

    failed, other = pair(HEAD + dying + BUILD, HEAD + NOTING, timed_min_blocks=20, timed_max_s=15.0)

    assert failure_of(failed).phase is Phase.TIMED
    assert len(result_of(other).process.timed.block_s) >= 20


@pytest.mark.parametrize("is_first", [True, False])
def test_waiting_for_a_partner_that_hangs_costs_nobody_his_time(pair, is_first):
    hanging = "import time\ndef step():\n    time.sleep(600)\n"
    sources = (HEAD + hanging + BUILD, GOOD)

    outcomes = pair(*(sources if is_first else sources[::-1]), timeout_s=10)

    failed, other = outcomes if is_first else outcomes[::-1]
    assert "time limit of 10 s" in failure_of(failed).reason
    assert "in step" in failure_of(failed).output
    assert result_of(other)


def test_the_end_of_one_process_ends_nothing_of_its_partner(pair, tmp_path):
    """Also not what can be told from orphans of the first by nothing: no cookie, own session."""
    note = tmp_path / "daemon"
    daemon = f"""
import os, subprocess
if os.fork() == 0:
    child = subprocess.Popen(["sleep", "611"], env={{}}, start_new_session=True)
    open({str(note)!r}, "w").write(str(child.pid))
    os._exit(0)
os.wait()
pid = int(open({str(note)!r}).read())
def step():
    os.kill(pid, 0)
"""
    first = HEAD + "import os\ndef step():\n    os._exit(3)\n" + BUILD

    failed, other = pair(first, HEAD + daemon + BUILD)

    assert "exit code 3" in failure_of(failed).reason
    assert result_of(other)
    assert not is_alive(int(note.read_text()))


def test_a_resident_pair_leaves_no_folder_and_no_process(pair, tmp_path, use_tempdir):
    (tmp_path / "tmp").mkdir()
    use_tempdir(tmp_path / "tmp")
    note = tmp_path / "pids"
    daemon = f"""
import subprocess
for environment in (None, {{}}):
    child = subprocess.Popen(["sleep", "611"], env=environment, start_new_session=True)
    open({str(note)!r}, "a").write(f"{{child.pid}}\\n")
"""

    pair(daemon + GOOD, daemon + GOOD)

    pids = [int(pid) for pid in note.read_text().split()]
    assert len(pids) == 4
    assert not any(is_alive(pid) for pid in pids)
    assert not list((tmp_path / "tmp").iterdir())


def test_each_side_has_its_own_root_and_its_own_compiled_code(task, tmp_path):
    leaving = """
import os, pathlib
print(os.getcwd())
place = pathlib.Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
def step():
    place.mkdir(parents=True, exist_ok=True)
    (place / pathlib.Path.cwd().name).touch()
    assert len(list(place.iterdir())) == 1
"""
    tasks = [task(name, HEAD + leaving + BUILD) for name in ("base", "head")]

    with local.launcher(tmp_path) as launcher:
        first, again = (
            [result_of(outcome).process.compiles.cache for outcome in launcher.launch_pair(*tasks)]
            for _ in range(2)
        )

    assert (first, again) == (["empty"] * 2, ["filled"] * 2)


def test_each_process_of_a_resident_pair_is_watched_by_a_monitor_of_its_own(task, tmp_path):
    step = "def step():\n    sum(range(1000))\n"
    tasks = [watched(task(name, HEAD + step + BUILD)) for name in ("base", "head")]

    outcomes = LocalLauncher(tmp_path).launch_pair(*tasks)

    for outcome in outcomes:
        evidence = result_of(outcome).process.evidence
        assert evidence is not None
        assert evidence.trouble == ""
        assert evidence.host.wall_s > 0


def test_a_resident_pair_without_a_place_for_its_folder_is_two_troubles(
    task, tmp_path, use_tempdir
):
    use_tempdir(Path(tmp_path, "nowhere"))

    outcomes = LocalLauncher(tmp_path).launch_pair(task("one", GOOD), task("other", GOOD))

    assert ["cannot start a process" in failure_of(one).reason for one in outcomes] == [True] * 2


@pytest.mark.gpu
def test_two_contexts_share_a_gpu_and_are_no_strangers_to_each_other(task, tmp_path):
    source = """
import torch
from ci_perf.workload import Workload
def build(context):
    matrix = torch.randn(1024, 1024, device=context.device)
    return Workload(step=lambda: matrix @ matrix)
"""
    launcher = LocalLauncher(tmp_path)
    machine = launcher.describe("cuda:0", 1, 1)
    assert isinstance(machine, MachineDescription), machine.reason
    with nvml.open_gpus(machine.gpus) as (gpu,):
        others = gpu.readings().processes  # this process is one where it has used the GPU before
    assert others is not None
    tasks = [
        msgspec.structs.replace(
            watched(task(name, source, timeout_s=120)), device="cuda:0", gpus=machine.gpus
        )
        for name in ("base", "head")
    ]

    processes = [result_of(outcome).process for outcome in launcher.launch_pair(*tasks)]

    assert len({len(process.timed.block_s) for process in processes}) == 1
    for process in processes:
        assert process.evidence is not None
        assert process.evidence.gpus[0].processes == others + 1
