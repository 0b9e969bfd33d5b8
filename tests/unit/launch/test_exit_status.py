import signal

import pytest

from ci_perf.launch import exit_status
from ci_perf.model.process import Exhausted, Phase
from ci_perf.model.task import TaskFailure
from ci_perf.model.validity import Evidence, HostEvidence
from ci_perf.system import child

PEAK = 7 * 2**30
EVIDENCE = Evidence(
    host=HostEvidence(
        wall_s=1.0,
        cpu_s=None,
        cpu_pressure=None,
        memory_pressure=None,
        throttled_s=None,
    ),
    gpus=(),
    host_rss_peak_bytes=PEAK,
    overhead_cpu_s=0.0,
)
BOOM = TaskFailure(phase=Phase.BUILD, reason="RuntimeError: a loader worker was killed")


class Host:
    """The files in which a kernel counts, in a folder."""

    def __init__(self, root):
        self.proc, self.cgroups = root / "proc", root / "cgroup"

    def write(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def count(self):
        return exit_status.kill_count(self.proc, self.cgroups)

    def version_2(self, kills, group="job"):
        self.write(self.proc / "self/cgroup", f"0::/{group}\n")
        self.write(self.cgroups / "job/memory.events", f"low 0\noom {kills}\noom_kill {kills}\n")

    def version_1(self, kills):
        self.write(self.proc / "self/cgroup", "9:name=systemd:/\n4:cpu,memory:/job\n0::/\n")
        text = f"oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n"
        self.write(self.cgroups / "memory/job/memory.oom_control", text)

    def after_a_kill(self, kind):
        """Return the count that was begun before one process was killed."""
        kind(self, 0)
        begun = self.count()
        kind(self, 1)
        return begun

    def of_all(self, kills):
        self.write(self.proc / "vmstat", f"nr_free_pages 12\noom_kill {kills}\n")


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def ended(code=1, *, timed_out=False):
    return child.Ended(code=code, timed_out=timed_out, tail="")


@pytest.mark.parametrize("kind", [Host.version_2, Host.version_1, Host.of_all])
def test_the_kernels_count_says_who_sent_sigkill(host, kind):
    kind(host, 3)
    kills = host.count()

    before = exit_status.describe(ended(-signal.SIGKILL), Phase.BUILD, kills.read())
    kind(host, 4)
    after = exit_status.describe(ended(-signal.SIGKILL), Phase.BUILD, kills.read())

    assert "ended by SIGKILL in phase build; another process sent it" in before
    assert "ended by SIGKILL in phase build; the kernel's out-of-memory killer did this" in after


def test_where_nobody_counts_sigkill_stays_a_guess(host):
    assert host.count() is None
    assert exit_status.describe(ended(-9), Phase.BUILD, None).endswith("killer does this")


def test_a_container_finds_its_group_at_the_root(host):
    host.version_2(0, group="../a/name/of/the/host")
    host.write(host.cgroups / "memory.events", "oom_kill 5\n")

    assert host.count().before == 5


def test_a_kill_for_memory_is_recorded_with_the_peak_that_the_monitor_saw(host):
    kills = host.after_a_kill(Host.version_2)
    failure = TaskFailure(phase=Phase.BUILD, reason="the process was ended by SIGKILL")

    found = exit_status.with_memory(failure, ended(-signal.SIGKILL), kills.read(), EVIDENCE)

    assert found.exhausted == Exhausted(kind="host", host_rss_peak_bytes=PEAK)
    assert found.reason == failure.reason


def test_a_process_whose_helper_was_killed_for_memory_says_so(host):
    kills = host.after_a_kill(Host.version_2)

    found = exit_status.with_memory(BOOM, ended(1), kills.read(), None)

    assert found.exhausted == Exhausted(kind="host")
    assert "worker was killed; meanwhile the kernel ended a process" in found.reason


def test_what_happens_to_others_on_the_host_explains_no_failure_of_ours(host):
    kills = host.after_a_kill(Host.of_all)

    assert exit_status.with_memory(BOOM, ended(1), kills.read(), None) is BOOM
    assert exit_status.with_memory(BOOM, ended(-9, timed_out=True), kills.read(), None) is BOOM


def test_what_the_process_could_still_say_stands(host):
    kills = host.after_a_kill(Host.version_2)
    told = TaskFailure(phase=Phase.BUILD, reason="MemoryError", exhausted=Exhausted(kind="limit"))

    assert exit_status.with_memory(told, ended(1), kills.read(), EVIDENCE) is told


def test_a_count_that_is_gone_has_not_risen(host):
    host.version_2(0)
    kills = host.count()
    (host.cgroups / "job/memory.events").unlink()

    assert not kills.read().has_risen


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "ended with exit code 0 in phase build, without a result"),
        (-signal.SIGSEGV, "ended by SIGSEGV in phase build; the stack is in the output"),
        (-signal.SIGABRT, "ended by SIGABRT in phase build"),
        (-250, "ended by signal 250 in phase build"),
    ],
)
def test_other_endings_have_their_words(code, words):
    assert exit_status.describe(ended(code), Phase.BUILD, None).endswith(words)
