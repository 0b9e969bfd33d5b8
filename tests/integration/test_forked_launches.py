"""Launches that are forked from one process, which has imported and prepared the workload file."""

import contextlib

import msgspec
import pytest

from ci_perf.launch.local import LocalLauncher
from tests.launches import HEAD, a_task, failure_of, result_of
from tests.processes import is_alive

PREPARED = f"""{HEAD}
import os, pathlib
pathlib.Path("imported").open("a").write("i")
changed = []

def prepare(words):
    pathlib.Path("prepared").open("a").write(words[0])

def step():
    pass

def build(context):
    assert not changed, "by another launch"
    changed.append(1)
    if context.parameters.get("dies"):
        os._exit(7)
    return Workload(step=step)
"""


@pytest.fixture
def launcher(tmp_path):
    with contextlib.closing(LocalLauncher(tmp_path)) as made:
        yield made


@pytest.fixture
def workload(tmp_path):
    (tmp_path / "it.py").write_text(PREPARED)
    return tmp_path / "it.py"


def forked(file, *, index=0, spread=0.005, **parameters):
    fields = {"launch": "fork", "collects": ("p",), "parameters": parameters}
    protocol = {"monitor_hz": 0, "launch_spread": spread}
    return a_task(file, workload=fields, index=index, protocol=protocol)


@pytest.mark.story
def test_launches_share_the_imports_and_no_state_however_long_they_time(launcher, workload):
    for spread in (0.005, 0.005, 0.02):
        result_of(launcher.launch(forked(workload, spread=spread)))

    assert (workload.parent / "imported").read_text() == "i"
    assert (workload.parent / "prepared").read_text() == "p"


def test_launches_that_are_compared_as_independent_ones_share_nothing(launcher, workload):
    for index in range(2):
        result_of(launcher.launch(forked(workload, index=index)))

    assert (workload.parent / "imported").read_text() == "ii"


def test_one_that_dies_costs_no_other(launcher, workload):
    died = failure_of(launcher.launch(forked(workload, dies=True)))

    assert "7" in died.reason
    result_of(launcher.launch(forked(workload)))


def test_two_of_them_take_turns(launcher, workload):
    for outcome in launcher.launch_pair(forked(workload), forked(workload)):
        assert result_of(outcome).process.timed.block_s


def test_where_a_thread_would_be_missing_each_launch_has_its_own_imports(launcher, workload):
    thread = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True)"
    workload.write_text(f"{PREPARED}\n{thread}.start()\n")

    result_of(launcher.launch(forked(workload)))

    assert (workload.parent / "prepared").read_text() == "p"
    assert (workload.parent / "imported").read_text() == "ii"


def test_one_that_hangs_is_ended_with_its_stack(launcher, workload):
    workload.write_text(f"{PREPARED}\nimport time\n".replace("    pass", "    time.sleep(60)"))
    protocol = {"monitor_hz": 0, "timeout_s": 1.0}
    task = a_task(workload, workload={"launch": "fork", "collects": ("p",)}, protocol=protocol)

    failure = failure_of(launcher.launch(task))

    assert "no result within the time limit" in failure.reason
    assert "in step" in failure.output


def test_a_server_ends_with_its_launcher(workload):
    with contextlib.closing(LocalLauncher(workload.parent)) as launcher:
        result_of(launcher.launch(forked(workload)))
        (server,) = launcher._servers.values()
        assert server._process.poll() is None

    assert server._process.returncode is not None


def test_other_tests_to_collect_have_a_server_of_their_own(launcher, workload):
    for words in (("p",), ("q",)):
        task = forked(workload)
        fields = msgspec.structs.replace(task.workload, collects=words)
        result_of(launcher.launch(msgspec.structs.replace(task, workload=fields)))

    assert (workload.parent / "prepared").read_text() == "pq"


def test_a_server_that_has_ended_is_replaced(launcher, workload):
    result_of(launcher.launch(forked(workload)))
    (server,) = launcher._servers.values()
    server._process.kill()
    server._process.wait()

    result_of(launcher.launch(forked(workload)))

    assert (workload.parent / "prepared").read_text() == "pp"


def test_imports_that_take_too_long_fork_nothing(launcher, workload):
    workload.write_text(f"{PREPARED}\nimport time\ntime.sleep(60)\n")
    task = a_task(
        workload,
        workload={"launch": "fork", "collects": ("p",)},
        protocol={"monitor_hz": 0, "timeout_s": 1.0},
    )

    failure = failure_of(launcher.launch(task))

    assert "no result within the time limit" in failure.reason
    assert not (workload.parent / "prepared").exists()


def test_nothing_is_left_of_what_the_imports_have_started(workload):
    starts = "import subprocess\nchild = subprocess.Popen(['sleep', '60'], start_new_session=True)"
    workload.write_text(f"{PREPARED}\n{starts}\npathlib.Path('pid').write_text(str(child.pid))\n")
    with contextlib.closing(LocalLauncher(workload.parent)) as launcher:
        result_of(launcher.launch(forked(workload)))
        assert is_alive(int((workload.parent / "pid").read_text()))

    assert not is_alive(int((workload.parent / "pid").read_text()))
