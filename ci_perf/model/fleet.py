"""Many machines: what fleet.toml says, and what the journal of one fleet run remembers."""

from typing import Annotated, Literal

import msgspec

from ci_perf.model.base import (
    SCHEMA_VERSION,
    AtLeastOne,
    Count,
    Finite,
    Key,
    Name,
    PositiveSeconds,
    Seconds,
    Struct,
    Text,
)
from ci_perf.model.environment import GpuMachine, Machine

# Which program queues, places and kills what a fleet measures.
FleetEngineName = Literal["local", "slurm", "kubernetes", "ray", "command"]
EndingKind = Literal["measured", "failed", "lost", "cancelled"]
# One word of a command line of the fleet's owner.
_Word = Annotated[str, msgspec.Meta(min_length=1, max_length=10_000)]
_Command = Annotated[tuple[_Word, ...], msgspec.Meta(min_length=1)]
# A name of Kubernetes, which becomes part of host names.
_Label = Annotated[
    str, msgspec.Meta(max_length=63, pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(?!\n)$")
]
_AbsolutePath = Annotated[str, msgspec.Meta(max_length=1000, pattern=r"^/[^\0\n]*(?!\n)$")]
_Quantity = Annotated[
    str, msgspec.Meta(max_length=30, pattern=r"^[0-9]+(\.[0-9]+)?[A-Za-z]*(?!\n)$")
]


# --- fleet.toml: the owner's, never a pull request's


class LocalTable(Struct, frozen=True, kw_only=True):
    """Slots of this machine: child processes."""


class SlurmTable(Struct, frozen=True, kw_only=True):
    """A cluster with Slurm. ``options`` are given to `sbatch`: partition, account, time limit.

    ``python`` is the interpreter on the nodes, which has ci_perf; empty means the one of this
    process, by the path that it has here.
    """

    options: tuple[_Word, ...] = ()
    python: Text = ""


class KubernetesTable(Struct, frozen=True, kw_only=True):
    """A cluster with Kubernetes, as `kubectl` reaches it.

    ``claim`` is a PersistentVolumeClaim that many nodes may write. It is mounted at ``mount``,
    where also this machine has it: checkout and output folder lie below. ``image`` holds
    ``python`` with ci_perf and torch. ``queue`` is a LocalQueue of Kueue, ``shm`` the size of
    /dev/shm.
    """

    image: _Word
    claim: _Label
    mount: _AbsolutePath
    namespace: _Label = "default"
    context: Text = ""
    queue: _Label | None = None
    python: _Word = "python3"
    shm: _Quantity = "8Gi"
    resources: dict[Name, _Quantity] = {}
    tolerations: tuple[dict[Key, Text], ...] = ()

    def __post_init__(self) -> None:
        """Refuse an image by its tag, which may be another one on the next node."""
        if "@sha256:" not in self.image:
            raise ValueError(f"expected an image by its digest (@sha256:), found {self.image!r}")


class RayTable(Struct, frozen=True, kw_only=True):
    """A cluster with Ray. ``address`` is HOST:PORT of its head, or "auto" on a node of it.

    ``python`` is the interpreter on the nodes, which has ci_perf; empty means the one of this
    process, by the path that it has here.
    """

    address: _Word = "auto"
    python: Text = ""

    def __post_init__(self) -> None:
        """Refuse Ray Client, whose tasks cannot say where they run."""
        if "://" in self.address:
            raise ValueError(f"expected 'auto' or HOST:PORT of the cluster, found {self.address!r}")


class CommandTable(Struct, frozen=True, kw_only=True):
    """Commands of the owner's for any other scheduler; docs/fleet.md says what each must answer."""

    submit: _Command
    poll: _Command
    cancel: _Command
    python: Text = ""


class EngineTables(Struct, frozen=True, kw_only=True):
    """The tables [engine.NAME] of fleet.toml."""

    local: LocalTable = LocalTable()
    slurm: SlurmTable = SlurmTable()
    kubernetes: KubernetesTable | None = None
    ray: RayTable = RayTable()
    command: CommandTable | None = None


class Expectation(Struct, frozen=True, kw_only=True):
    """Hard facts of a machine that every node of a class must have; `None` asks for nothing."""

    device: Literal["cpu", "cuda"] | None = None
    cpu_model: Text | None = None
    logical_cores: Count | None = None
    gpu_model: Text | None = None
    gpu_count: Count | None = None
    mig: bool | None = None

    def difference(self, machine: Machine) -> str:
        """Say in which fact a machine is another one; empty if in none."""
        facts: dict[str, object] = msgspec.structs.asdict(machine)
        facts["device"] = "cuda" if isinstance(machine, GpuMachine) else "cpu"
        for name, expected in msgspec.structs.asdict(self).items():
            if expected is not None and facts.get(name) != expected:
                return f"{name}: expected {expected!r}, found {facts.get(name)!r}"
        return ""


class NodeClass(Struct, frozen=True, kw_only=True):
    """Machines that may stand in for each other.

    ``select`` is how the engine knows them: GRES of Slurm ("gpu:h100:1"), a label of nodes
    ("pool=h100"), resources of Ray ("GPU:8"), CUDA devices of this machine ("0,1"). At most
    ``nodes`` units run at once. ``gate = false`` shows what the class measured, and never fails a
    job for it. A node whose canaries take longer than those of its class by more than
    ``canary_limit`` (0.25 = 25 %), and by more than these differ, measures nothing
    while another node can be tried.
    """

    select: Text = ""
    expect: Expectation = Expectation()
    nodes: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1
    gate: bool = True
    canary_limit: Annotated[float, msgspec.Meta(ge=0, le=1000)] = 0.25


class FleetFile(Struct, frozen=True, kw_only=True):
    """The whole of fleet.toml.

    ``environment`` names variables that a unit is given beside the usual ones of a shell.
    ``queue_s`` is how long a class may stand still before its units are given up.
    """

    schema_version: int = SCHEMA_VERSION
    engine: EngineTables = EngineTables()
    classes: Annotated[dict[Name, NodeClass], msgspec.Meta(min_length=1)] = msgspec.field(
        name="class"
    )
    environment: tuple[Key, ...] = ()
    queue_s: PositiveSeconds = 7200.0


# --- what a controller tells a node, and what comes back


class Order(Struct, frozen=True, kw_only=True):
    """What one node is to run. ``environment`` names the variables of the node that it keeps."""

    unit: Name
    nonce: Name
    command: _Command
    cwd: Text
    environment: tuple[Key, ...]


class JobFile(Struct, frozen=True, kw_only=True):
    """One job of an engine: the folders of its attempts, by their index in the job."""

    folders: tuple[Text, ...]


class Receipt(Struct, frozen=True, kw_only=True):
    """What a node says once its command has ended; ``exit_code`` is negative for a signal."""

    unit: Name
    nonce: Name
    node: Text
    exit_code: Annotated[int, msgspec.Meta(ge=-256, le=256)]
    duration_s: Seconds
    output: Text


# --- the journal


class Attempt(Struct, frozen=True, kw_only=True):
    """One try to measure a unit. Only a result with its ``nonce`` counts.

    ``job`` is what the engine is told to call it, ``index`` its place in there. ``avoid`` are nodes
    on which the unit has failed before.
    """

    unit: Name
    number: AtLeastOne
    nonce: Name
    job: Name
    index: Count = 0
    avoid: tuple[Text, ...] = ()


class Ending(Struct, tag_field="event", tag="ended", frozen=True, kw_only=True):
    """How a unit ended: the only ending that it has in this run of the controller.

    ``lost`` says that no attempt came back, ``failed`` that one did and is of no use. ``nodes`` are
    those on which it ran, ``attempts`` those that were spent.
    """

    unit: Name
    kind: EndingKind
    reason: Text = ""
    nodes: tuple[Text, ...] = ()
    attempts: Count = 0
    duration_s: Seconds = 0.0


class Began(Struct, tag_field="event", tag="began", frozen=True, kw_only=True):
    """The controller began, or goes on. ``plan`` is a digest of all that it was asked to do."""

    plan: Name
    engine: FleetEngineName
    units: Count


class Submitting(Struct, tag_field="event", tag="submitting", frozen=True, kw_only=True):
    """The engine is about to be asked: an attempt without a handle may be in its queue."""

    attempts: tuple[Attempt, ...]


class Submitted(Struct, tag_field="event", tag="submitted", frozen=True, kw_only=True):
    """The engine has taken the attempts: its handles by nonce."""

    handles: dict[Name, Text]


class NotTaken(Struct, tag_field="event", tag="not_taken", frozen=True, kw_only=True):
    """The engine has not taken the attempts."""

    nonces: tuple[Name, ...]
    reason: Text


class Started(Struct, tag_field="event", tag="started", frozen=True, kw_only=True):
    """An attempt was seen running."""

    nonce: Name
    node: Text


class Requeued(Struct, tag_field="event", tag="requeued", frozen=True, kw_only=True):
    """An attempt is over without a result, and the unit waits for another one.

    ``spent`` says that it counts: it does not where the node is not to blame.
    """

    nonce: Name
    unit: Name
    reason: Text
    spent: bool
    node: Text = ""


Event = Began | Submitting | Submitted | NotTaken | Started | Requeued | Ending


class JournalLine(Struct, frozen=True, kw_only=True):
    """One line of journal.jsonl; ``at`` is in seconds since 1970."""

    at: Finite
    entry: Event


class Endings(Struct, frozen=True, kw_only=True):
    """How every unit of a fleet run ended: endings.json."""

    schema_version: int = SCHEMA_VERSION
    engine: FleetEngineName
    endings: tuple[Ending, ...]
