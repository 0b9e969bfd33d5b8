"""Ranks for real: torchrun, what its ranks see, and every way in which one of them can end."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ci_perf.model import task
from ci_perf.model.process import Phase, Ranks, WorkerResult
from ci_perf.system import files
from tests.processes import is_alive, wait_until
from tests.ranks import Launch
from tests.runs import a_process

ROOT = Path(__file__).parents[2]
WORKLOADS = ROOT / "workloads"

# A rank that never ends, as one does that waits for a peer.
HANG = "import faulthandler\nfaulthandler.register(signal.SIGUSR1)\ntime.sleep(600)\n"
# Rank 0 hears of the end of rank 1, as nccl and gloo do, and complains.
COMPLAIN = """
wait_for("pid.1")
stat = Path("/proc", (folder / "pid.1").read_text(), "stat")
with contextlib.suppress(OSError):
    while stat.read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.001)
tell("RuntimeError: Connection closed by peer")
"""
# What the ranks of a real workload see, before and after steps without communication.
WITNESS = """
import gc, json, os, sys, time
from pathlib import Path
import torch
import bert_base_finetune
from ci_perf.measuring import distributed
from ci_perf.workload import Context
class Device:
    def synchronize(self):
        pass
torch.set_num_threads(1)
group = distributed.join("cpu")
def built(**more):
    torch.manual_seed(0)
    parameters = {"model": "tiny", "strategy": "ddp", "batch": 2, "seq": 8, **more}
    return bert_base_finetune.build(Context(
        device="cpu",
        parameters={**parameters, "world_size": group.world_size},
        seed=0,
        data_dir="",
        rank=group.rank,
        world_size=group.world_size,
    ))
def weights_here():
    gc.collect()
    (optimizer,) = [one for one in gc.get_objects() if isinstance(one, torch.optim.AdamW)]
    return optimizer.param_groups[0]["params"]
def followed(**more):
    workload, losses = built(**more), []
    for _ in range(3):
        workload.step()
        losses.append(workload.loss())
    return {"losses": losses, "elements": sum(
        (one.to_local() if hasattr(one, "to_local") else one).numel() for one in weights_here()
    )}
halves = {"batch": 1, "gradient_accumulation": 2}
strategies = {
    f"{strategy} {name}": followed(strategy=strategy, **more)
    for strategy in ("ddp", "fsdp") for name, more in {"whole": {}, "halves": halves}.items()
}
workload = built()
workload.step()
losses = group.gather(workload.loss())
workload.local_step()
workload.step()
weights = sum(float(one.double().abs().sum()) for one in weights_here())
late = 0.3 * group.rank
facts = {
    "rank": group.rank,
    "maximum": group.maximum(10.0 - group.rank),
    "gathered": group.gather(float(group.rank)),
    "losses": losses,
    "strategies": strategies,
    "weights": group.gather(weights),
    "items": workload.items_per_step,
    "skew_s": distributed.arrival_skew(group, Device(), lambda: time.sleep(late), 3),
    "described": group.describe(0.5).backend,
    "restarts": group.describe(0.5).restarts,
    "world_size": group.describe(0.5).world_size,
}
group.leave()
Path(sys.argv[1], f"facts.{group.rank}").write_text(json.dumps(facts))
"""
# Rank 1 dies within a step, while rank 0 waits for it.
DYING = """
import os, signal
import torch
from torch import distributed
from ci_perf.workload import Workload
def build(context):
    total = torch.ones(4)
    def step():
        if context.rank == 1:
            print("the last words of rank 1", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        distributed.all_reduce(total)
    return Workload(step=step)
"""
# A host whose name has no address, and that reaches nobody but itself.
NAMELESS = """
import fcntl, os, socket, struct, sys
socket.sethostname("a-host-that-has-no-address")
with socket.socket() as any_socket:
    fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh", b"lo", 1 | 64))  # SIOCSIFFLAGS: up, running
os.execvp(sys.argv[1], sys.argv[1:])
"""
ALONE = ["unshare", "--map-root-user", "--uts", "--net", sys.executable, "-c", NAMELESS]


@pytest.fixture
def launch(tmp_path):
    return Launch(tmp_path)


def test_ranks_are_told_who_they_are_and_their_result_is_taken(launch, tmp_path):
    group = Ranks(world_size=2, restarts=0, backend="gloo", arrival_skew_s=None)
    process = a_process(ranks=group)
    result = WorkerResult(
        items_per_step=1.0, item_unit="step", precision="", knobs={}, process=process
    )
    files.write(tmp_path / "result.json", result)
    launch.stand_in(f"""
        seen = [os.environ[name] for name in ("WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR")]
        assert seen == ["2", str(rank), "127.0.0.1"], seen
        assert os.environ["GLOO_SOCKET_IFNAME"] == os.environ["NCCL_SOCKET_IFNAME"] == "lo"
        assert int(sys.argv[2]) == os.getppid()
        if rank == 0:
            (folder / "result.json").write_text(Path("{tmp_path}/result.json").read_text())
    """)

    ended = launch.run()

    assert ended.code == 0, ended.tail
    assert ended.tail == ""
    assert not (launch.folder / task.FAILURE).exists()


KILLED = "os.kill(os.getpid(), signal.SIGKILL)"
RAISES = "tell('ValueError: boom')"


@pytest.mark.parametrize(
    ("ends", "other", "reason"),
    [
        (KILLED, COMPLAIN, "the process was ended by SIGKILL"),
        (RAISES, HANG, "ValueError: boom"),
    ],
    ids=["killed", "raises while the other hangs"],
)
def test_a_rank_that_ends_is_the_cause_and_the_others_are_ended(launch, ends, other, reason):
    launch.stand_in(f"if rank == 1:\n    wait_for('pid.0')\n    {ends}\n{other}")

    ended = launch.run()

    assert ended.code == 1
    assert launch.trouble.phase is Phase.TIMED
    assert launch.trouble.reason.startswith(f"rank 1 of 2: {reason}")
    assert launch.trouble.output == "rank 1 was here\n"
    assert not any(is_alive(pid) for pid in launch.pids)


def test_a_hang_is_ended_by_the_time_limit_and_every_rank_says_where(launch):
    launch.stand_in(HANG)

    ended = launch.run(timeout_s=20)

    assert ended.timed_out
    assert not any(is_alive(pid) for pid in launch.pids)
    assert (launch.folder / task.PHASE).read_text() == "timed"
    for rank in range(2):
        words = ended.tail.partition(f"rank {rank}:\n")[2].partition("rank 1:\n")[0]
        assert f"rank {rank} was here" in words
        assert "stand_in.py" in words  # a stack


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_to_the_agent_leaves_no_rank(launch, number):
    launch.stand_in(
        "from ci_perf.system import linux\nlinux.end_with_parent(int(sys.argv[2]))\n" + HANG
    )
    agent = subprocess.Popen(
        launch.command(), env=launch.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    wait_until(launch.has_started)

    agent.send_signal(number)
    agent.communicate(timeout=60)

    assert agent.returncode in {1, -signal.SIGKILL}
    wait_until(lambda: not any(is_alive(pid) for pid in launch.pids))


def test_a_port_that_somebody_else_took_is_left_to_them(launch):
    launch.stand_in("pass")
    taken = "__import__('socket').create_server(('127.0.0.1', 0))"
    first = f"itertools.chain([(taken := {taken}).getsockname()[1]], iter(ranks.free_port, 0))"

    launch.run(launch.command(port=f"{first}.__next__"))

    assert "none of them left a result" in launch.trouble.reason
    assert launch.has_started()


def test_what_a_rank_prints_without_end_is_cut(launch):
    launch.stand_in("for n in range(200_000): print('line', n)\ntell('ValueError: too loud')")

    launch.run()

    assert len(launch.trouble.output) == 10_000


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What two real ranks saw."""
    launch = Launch(tmp_path_factory.mktemp("seen"))
    (launch.modules / "witness.py").write_text(WITNESS)
    ended = launch.planned("it.py").run(launch.command(worker="witness"))
    paths = [launch.folder / f"facts.{rank}" for rank in range(2)]
    assert all(path.exists() for path in paths), (ended, launch.trouble)
    return [json.loads(path.read_text()) for path in paths]


def test_ranks_hear_each_other_and_know_who_connects_them(seen):
    first, second = seen
    for facts in seen:
        assert (facts["maximum"], facts["gathered"]) == (10.0, [0.0, 1.0])
        assert (facts["world_size"], facts["restarts"], facts["described"]) == (2, 0, "gloo")
    # The second sleeps for 0.3 s; how late the first is, nobody knows.
    assert first["skew_s"] == second["skew_s"] > 0.1


def test_ranks_learn_from_different_samples_and_a_step_by_themselves_does_not_part_them(seen):
    losses, weights = seen[0]["losses"], seen[0]["weights"]

    assert losses[0] != losses[1]
    assert weights[0] == weights[1]
    assert seen[0]["items"] == 4


@pytest.mark.parametrize("name", ["whole", "halves"])
def test_fsdp_learns_as_ddp_does_and_holds_half_of_the_weights_in_each_of_two_ranks(seen, name):
    for facts in seen:
        ddp, fsdp = (facts["strategies"][f"{strategy} {name}"] for strategy in ("ddp", "fsdp"))

        assert fsdp["losses"] == pytest.approx(ddp["losses"], rel=1e-4)
        assert len(set(ddp["losses"])) == 3
        assert fsdp["elements"] == pytest.approx(ddp["elements"] / 2, rel=0.01)


@pytest.mark.skipif(
    subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode != 0,
    reason="this user may not make a host of its own (unshare)",
)
def test_a_workload_is_measured_on_a_host_without_an_address(launch):
    parameters = {"model": "tiny", "strategy": "ddp", "batch": 2, "seq": 8, "world_size": 2}
    launch.planned(WORKLOADS / "bert_base_finetune.py", parameters=parameters)

    ended = launch.real(prefix=ALONE)

    assert ended.code == 0, launch.trouble
    found = launch.result.process.ranks
    assert found is not None
    assert (found.world_size, found.restarts, found.backend) == (2, 0, "gloo")
    assert found.arrival_skew_s is not None
    assert launch.result.items_per_step == 4


def test_fsdp_is_measured_in_two_ranks(launch):
    parameters = {"model": "tiny", "strategy": "fsdp", "batch": 2, "seq": 8, "world_size": 2}
    launch.planned(WORKLOADS / "bert_base_finetune.py", parameters=parameters)

    ended = launch.real()

    assert ended.code == 0, launch.trouble
    process = launch.result.process
    assert process.ranks == Ranks(world_size=2, restarts=0, backend="gloo", arrival_skew_s=None)
    assert launch.result.items_per_step == 4
    assert process.work.parameters == 607_362
    assert len(process.fingerprint.losses) == 3


def test_a_rank_that_dies_within_a_step_makes_one_clear_failure(launch, tmp_path):
    (tmp_path / "dying.py").write_text(DYING)
    launch.planned(tmp_path / "dying.py")

    ended = launch.real()

    assert ended.code == 1
    assert launch.trouble.phase is Phase.FIRST_STEP
    assert launch.trouble.reason.startswith("rank 1 of 2: the process was ended by SIGKILL")
    assert launch.trouble.output.endswith("the last words of rank 1\n")
    assert not (launch.folder / task.RESULT).exists()


@pytest.mark.gpu
def test_a_rank_on_a_gpu_is_connected_by_nccl(launch):
    pytest.importorskip("transformers")
    parameters = {"model": "tiny", "strategy": "ddp", "batch": 2, "seq": 8, "world_size": 1}
    file = WORKLOADS / "bert_base_finetune.py"
    launch.planned(file, world_size=1, parameters=parameters, device="cuda:0")

    ended = launch.real()

    assert ended.code == 0, launch.trouble
    found = launch.result.process
    assert found.ranks == Ranks(world_size=1, restarts=0, backend="nccl", arrival_skew_s=None)
    assert found.memory.device is not None


@pytest.mark.gpu
def test_data_parallel_on_a_gpu_is_a_process_of_its_own(launch):
    pytest.importorskip("transformers")
    parameters = {"model": "tiny", "strategy": "data_parallel", "batch": 2, "seq": 8}
    file = WORKLOADS / "bert_base_finetune.py"
    launch.planned(file, world_size=1, parameters=parameters, device="cuda:0", start="process")

    ended = launch.real(agent="ci_perf.measuring.worker")

    assert ended.code == 0, ended.tail
    assert launch.result.process.ranks is None
