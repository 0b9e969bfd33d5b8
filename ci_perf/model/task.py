"""What a parent and its child processes exchange: modules, files, documents and signals by name."""

from enum import Enum

from ci_perf.model.base import (
    Amount,
    AtLeastOne,
    Bytes,
    Count,
    Key,
    Name,
    PositiveSeconds,
    Struct,
    Text,
)
from ci_perf.model.environment import Environment
from ci_perf.model.plant import Plant
from ci_perf.model.process import Exhausted, Phase
from ci_perf.model.program import Digest
from ci_perf.model.suite import PlannedWorkload
from ci_perf.model.validity import Evidence

# The modules that a parent starts by name: it must not import them, as they may import torch.
WORKER = "ci_perf.measuring.worker"
FORK_SERVER = "ci_perf.measuring.fork_server"
RANKS = "ci_perf.measuring.ranks"
CANARIES = "ci_perf.measuring.canary_programs"
MACHINE = "ci_perf.measuring.environment_probe"
GPU_STATES = "ci_perf.measuring.gpu_probe"
DEEP_CHECKS = "ci_perf.measuring.deep_checks"
MONITOR = "ci_perf.measuring.monitor.server"

# The files of one launch, in a folder of its own.
TASK = "task.json"
RESULT = "result.json"
FAILURE = "trouble.json"
PHASE = "phase"
# The last act of a process that ended as it should.
DONE = "done"
# What a launch has recorded, beside its result.
PROGRAM = "program.json"
# What a profiling launch leaves beside its result where its trace is to be kept.
TRACE = "trace.pt.trace.json.gz"
MOST_TRACE_BYTES = 50 * 2**20
# What a process says that is ready to fork others, or never will be.
READY_TO_FORK, HAS_THREADS = b"r", b"t"
# The socket on which the monitor listens, and what the monitor leaves.
MONITOR_SOCKET = "monitor"
EVIDENCE = "evidence.json"
# The pipes of a resident process, in the folder that `Task.turns` names.
TURN_REQUESTS = "asked"
TURN_ANSWERS = "granted"
# A rank has imported; the pipe that its agent opens when all of them have their turn.
IMPORTED = "imported"
RANKS_TURN = "ranks-turn"


# Programs that import much and compile with torch took up to 2.3 times as long.


def name_rank_file(name: str, rank: int) -> str:
    """Name the file of one rank: "trouble.1.json" beside "trouble.json", "phase.1"."""
    stem, dot, suffix = name.partition(".")
    return f"{stem}.{rank}{dot}{suffix}"


def monitor_address(folder: int) -> str:
    """Name the monitor's socket in an open folder: its own path may be too long for a socket."""
    return f"/proc/self/fd/{folder}/{MONITOR_SOCKET}"


class MonitorMark(bytes, Enum):
    """What a worker tells the monitor, which answers with the same word."""

    HELLO = b"hello"
    BEGIN = b"begin"  # of timing
    END = b"end"


class TurnRequest(bytes, Enum):
    """What a resident process asks its parent for."""

    IMPORT = b"i"  # which it may do beside others: nothing is timed
    PHASE = b"p"
    BLOCK = b"b"
    BLOCK_AFTER_ENOUGH = b"e"  # it needs no more blocks
    BLOCK_AFTER_CAP = b"c"  # it has timed for as long as it may


class TurnAnswer(bytes, Enum):
    """What the parent answers: take the turn, with the block that was asked for or without it."""

    TAKE = b"t"
    TAKE_WITHOUT_BLOCK = b"x"  # both have enough blocks, or one has no time left


class CommandTurn(Struct, frozen=True, kw_only=True):
    """How long a turn of a command is that runs beside its copy: so many step times.

    If none comes for ``timeout_s`` seconds, it waits for its copy: both cannot exist at once.
    """

    steps: AtLeastOne
    timeout_s: PositiveSeconds


class Task(Struct, frozen=True, kw_only=True):
    """One launch of one workload. ``root`` is the folder where imports are resolved.

    It lies in a repository, whose top is ``top``; empty where that cannot be seen.

    ``gpus`` are the UUIDs of the devices that it may use, none on a CPU. ``turns`` is the folder
    by which a process takes turns with others; empty for one that has the machine for itself. With
    ``imports_ahead`` (how many import at once) it takes two, to import and for all the rest;
    without, it shares every block with its partner, and a command each ``command_turn``. With
    ``only_libraries`` the first of the two is for installed libraries alone. Of several ranks their
    agent takes the turns.
    One with ``libraries``, which its file imports first, may be forked from one that has them.
    With ``forks_next`` the launches after it are, so that another one costs no import.
    ``python_path`` are folders below the root that are searched right after it; nothing may be
    imported from ``foreign_root``, the other side of a comparison, nor from a copy of what is in
    the ``source_folders`` of the repository, which are relative to the root. ``native_source`` is a
    file to be compiled that differs between the sides, empty where none does. One with a
    ``profiler``, "module:attribute", takes no part in any verdict: this finds out what a step does.
    Its trace is put at ``trace_to``, a path; empty for none. (The process itself only learns
    whether.) One that ``keeps_sources`` returns the source of generated kernels, too. A ``plant``
    makes its steps worse, of `ci-perf try` and `rehearse` alone.
    """

    workload: PlannedWorkload
    index: Count
    device: Text
    root: Text
    data_dir: Text
    gpus: tuple[Name, ...] = ()
    turns: Text = ""
    command_turn: CommandTurn | None = None
    imports_ahead: Count = 0
    only_libraries: bool = False
    libraries: tuple[Text, ...] = ()
    forks_next: bool = False
    python_path: tuple[Text, ...] = ()
    foreign_root: Text = ""
    top: Text = ""
    source_folders: tuple[Text, ...] = ()
    native_source: Text = ""
    profiler: Text = ""
    trace_to: Text = ""
    keeps_sources: bool = False
    plant: Plant | None = None


class TaskFailure(Struct, frozen=True, kw_only=True):
    """Why a process has no result; of several ranks, ``rank`` is the one that failed first.

    ``evidence`` is what the monitor saw until then.
    """

    phase: Phase
    reason: Text
    output: Text = ""
    exhausted: Exhausted | None = None
    rank: Count | None = None
    evidence: Evidence | None = None


class MachineDescription(Struct, frozen=True, kw_only=True):
    """The device that "auto" came to, what must be locked to use it alone, and the machine.

    ``gpus`` are the UUIDs of the GPUs that will be used, none on a CPU. ``variables`` is the whole
    environment of a child process, as digests of the values; a run file has none of it.
    ``ci_perf`` is the version that is installed there, "" for none, and ``note`` is for the reader.
    """

    device: Text
    locks: tuple[Name, ...]
    gpus: tuple[Name, ...]
    environment: Environment
    variables: dict[str, Digest] = {}
    ci_perf: Text = ""
    note: Text = ""


def module_of(task: Task) -> str:
    """Name the module that measures a task: in one process, or one per rank."""
    return RANKS if task.workload.launch == "torchrun" else WORKER


class GpuState(Struct, frozen=True, kw_only=True):
    """One GPU at rest, `None` where the driver does not say; ``absent`` has its answers then.

    ``utilization`` is a share, the highest of several looks. ``ecc_errors`` are uncorrected ones
    since the driver was loaded, ``rows_broken`` is whether memory rows wait to be replaced.
    """

    uuid: Name
    utilization: Amount | None
    used_bytes: Bytes | None
    processes: Count | None
    ecc: bool | None
    ecc_errors: Count | None
    rows_broken: bool | None
    mig: bool | None
    power_limit_w: Amount | None
    power_default_w: Amount | None
    pcie_width: Count | None
    pcie_max_width: Count | None
    absent: dict[Key, Text]
    lost: Text = ""
    total_bytes: Bytes | None = None


class GpuStates(Struct, frozen=True, kw_only=True):
    """All GPUs that will be used."""

    gpus: tuple[GpuState, ...]


class CanaryTimes(Struct, frozen=True, kw_only=True):
    """Seconds per step of each canary, by its name; none where there is no torch."""

    median_s: dict[Name, PositiveSeconds]
