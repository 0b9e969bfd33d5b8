"""Two containers that are there at once, and of which one runs at any time."""

import contextlib
import itertools
import json
import os
from pathlib import Path

import msgspec
import pytest

from ci_perf.model.process import Phase
from ci_perf.system import processes
from tests import residents
from tests.features.containers.helpers import benches
from tests.launches import BUILD, GOOD, HEAD, failure_of, result_of

pytestmark = pytest.mark.container

# Both find the same folder there; they tell themselves apart by a file in their checkouts.
SHARED = "/data"
NOTING = residents.noting(
    f"""open(f"{SHARED}/steps-{{open('name').read()}}.json", "w").write(json.dumps(steps))"""
)
# With a session of its own, orphaned.
DAEMON = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        work_ahead()
    os._exit(0)
os.wait()
"""
FETCHING = residents.fetching(f"{SHARED}/counter", begin=DAEMON)
WATCHING = residents.watching(f"{SHARED}/counter")
KILLED = "import os\ndef step():\n    os.kill(os.getpid(), 9)\n"


@pytest.fixture
def benched(request, tmp_path):
    """Return a bench of an engine with two checkouts, and a function that launches a pair."""

    def make(which="docker"):
        other = benches.folder(tmp_path / "other")
        bench = benches.of(request, which, tmp_path, sides=[other])
        for root, name in ((bench.root, "first"), (other, "second")):
            (root / "name").write_text(name)

        def pair(first, second, *, interrupted=lambda: False, **protocol):
            tasks = [
                bench.task(source, root=root, protocol=protocol)
                for root, source in ((bench.root, first), (other, second))
            ]
            return bench.launcher.launch_pair(*tasks, interrupted)

        return bench, pair

    return make


@pytest.fixture
def pair(benched):
    return benched()[1]


@pytest.mark.parametrize("which", ["docker", "podman"])
def test_of_two_containers_one_runs_at_any_time_and_they_alternate(benched, which, monkeypatch):
    bench, pair = benched(which)
    waking_on, woken = processes.wake_on, []

    @contextlib.contextmanager
    def noted(pid, cpu):
        with waking_on(pid, cpu):
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            woken.append((command, os.sched_getaffinity(pid) == {cpu}))
            yield

    monkeypatch.setattr(processes, "wake_on", noted)
    outcomes = pair(
        HEAD + NOTING, HEAD + NOTING, timed_min_blocks=20, timed_max_s=15.0, monitor_hz=20
    )

    blocks = [len(result_of(outcome).process.timed.block_s) for outcome in outcomes]
    steps = sorted(
        (*step, name)
        for name in ("first", "second")
        for step in json.loads((bench.kept / f"data/steps-{name}.json").read_text())
    )
    turns = [name for name, _ in itertools.groupby(name for *_, name in steps)]
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(steps))
    assert blocks[0] == blocks[1] >= 20
    assert len(turns) > 20
    # What is woken on the CPU of the other one is what measures, and neither init nor client.
    assert len(woken) > 20
    assert all(b"ci_perf.measuring.worker" in command and is_there for command, is_there in woken)
    assert [result_of(outcome).process.evidence.trouble for outcome in outcomes] == ["", ""]
    assert bench.left() == []


def test_what_a_container_has_started_stands_still_while_its_partner_runs(pair):
    for outcome in pair(HEAD + FETCHING + BUILD, HEAD + WATCHING):
        result_of(outcome)


def test_a_container_whose_partner_is_killed_goes_on(pair):
    failed, other = pair(HEAD + KILLED + BUILD, GOOD)

    assert failure_of(failed).phase is Phase.FIRST_STEP
    assert result_of(other).process.timed.stopped != "partner"


def test_a_container_that_never_begins_leaves_the_turn_to_its_partner(benched):
    bench, pair = benched()
    second = bench.launcher.sides[1]
    gone = msgspec.structs.replace(second.image, config=f"sha256:{'0' * 64}")
    bench.launcher.sides = (bench.launcher.sides[0], type(second)(root=second.root, image=gone))

    of_first, of_second = pair(GOOD, GOOD)

    assert result_of(of_first)
    assert failure_of(of_second).phase is Phase.LAUNCH


def test_a_partner_that_hangs_is_ended_and_costs_nobody_his_time(pair):
    hanging = "import time\ndef step():\n    time.sleep(600)\n"

    failed, other = pair(HEAD + hanging + BUILD, GOOD, timeout_s=3)

    assert "time limit of 3 s" in failure_of(failed).reason
    assert "in step" in failure_of(failed).output
    assert result_of(other)


def test_an_interrupt_ends_both_containers_also_the_one_that_waits(benched):
    bench, pair = benched()
    mark = f"open('{SHARED}/at-work', 'w').close()\n"
    hanging = f"import time\ndef step():\n    {mark}    time.sleep(600)\n"

    with pytest.raises(KeyboardInterrupt):
        pair(
            HEAD + NOTING,
            HEAD + hanging + BUILD,
            interrupted=(bench.kept / "data/at-work").exists,
        )

    assert bench.left() == []
    assert [file.name for file in (bench.kept / "data").iterdir()] == ["at-work"]
