"""What one session measured, or several that were merged: run.json."""

import re
from typing import Annotated, Literal

import msgspec

from ci_perf.errors import InvalidFileError
from ci_perf.model.base import (
    SCHEMA_VERSION,
    AtLeastOne,
    Count,
    Items,
    Key,
    Name,
    NameOrEmpty,
    Scalar,
    Seconds,
    Side,
    Struct,
    SuiteName,
    Text,
)
from ci_perf.model.container import Image
from ci_perf.model.environment import Environment, Software
from ci_perf.model.explanation import ProfiledPairs
from ci_perf.model.plant import Plant
from ci_perf.model.process import Exhausted, Phase, Process
from ci_perf.model.program import Program, RelativePath, SameProgram, Touched
from ci_perf.model.suite import OWN, THREAD_VARIABLES, Launch, Protocol
from ci_perf.model.validity import Canary, Validity

# Of one workload in one run; judging/policy.py has the looks at them.
MOST_PAIRS = 18
# What pairs can say of a metric.
PairVerdict = Literal["regressed", "improved", "unchanged", "inconclusive"]


class Tool(Struct, frozen=True, kw_only=True):
    """What wrote the file."""

    name: Literal["ci-perf"] = "ci-perf"
    version: Text


UNKNOWN_COMMIT = "unknown"
# Of "0-3,8", as `knobs` spells the CPUs that a process may use.
_CPU_RANGE = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?")


class Source(Struct, frozen=True, kw_only=True):
    """The code that was measured. ``commit`` is "unknown" outside a git repository."""

    commit: Text
    branch: Text
    dirty: bool


def is_same_code(first: Source, second: Source) -> bool:
    """Whether both are surely the same code."""
    is_known = first.commit != UNKNOWN_COMMIT and not (first.dirty or second.dirty)
    return is_known and first.commit == second.commit


class Measured(Struct, frozen=True, kw_only=True):
    """A workload that has numbers."""

    workload: Name
    description: Text
    parameters: dict[str, Scalar]
    launch: Launch
    world_size: AtLeastOne
    protocol: Protocol
    items_per_step: Items
    item_unit: Name
    items_per_epoch: Items | None = None
    precision: Text
    knobs: dict[Key, Scalar]
    processes: Annotated[tuple[Process, ...], msgspec.Meta(min_length=1)]

    def describe_threads(self) -> str:
        """Say how many threads its libraries may start; empty where that is not known.

        A setting of "own" is the environment's: its variables, and as many threads as CPUs.
        """
        if self.protocol.threads != OWN:
            return str(self.protocol.threads)
        ranges = _CPU_RANGE.findall(str(self.knobs.get("cpus", "")))
        if not ranges:
            return ""
        count = sum(int(last or first) - int(first) + 1 for first, last in ranges)
        said = [f"{name}={self.knobs[name]}" for name in THREAD_VARIABLES if name in self.knobs]
        return f"{OWN} ({', '.join([f'CPUs={count}', *said])})"


class Failed(Struct, frozen=True, kw_only=True):
    """A workload that has none, and why. ``processes`` are those that finished before it failed.

    ``exhausted`` is what is known when memory ran out.
    """

    workload: Name
    description: Text
    parameters: dict[str, Scalar]
    launch: Launch
    world_size: AtLeastOne
    protocol: Protocol
    phase: Phase
    reason: Text
    output: Text
    exhausted: Exhausted | None = None
    processes: tuple[Process, ...] = ()


class Pair(Struct, frozen=True, kw_only=True):
    """One launch of the base and one of the head that took turns; ``first`` came first.

    ``resident`` says that both were alive at once and alternated in short bursts, ``forked`` that
    each came from a process that had imported libraries: so nothing is known of its start.
    """

    first: Side
    resident: bool = False
    forked: bool = False
    base: Process
    head: Process


class Paired(Struct, frozen=True, kw_only=True):
    """One workload whose base was launched beside its head.

    ``file`` says whose text the base's workload file has: the head's, or another one of its own.
    ``trouble`` is why the base could not be launched, or not any more; ``output`` its last lines.
    """

    workload: Name
    file: Side = "head"
    pairs: tuple[Pair, ...] = ()
    trouble: Text = ""
    output: Text = ""


class EnvironmentDifference(Struct, frozen=True, kw_only=True):
    """A package or fact that is not the same in the environments of both sides; "" is none."""

    name: Name
    base: Text
    head: Text


class OtherEnvironment(Struct, frozen=True, kw_only=True):
    """The base was launched by ``python``, of an ``image`` if it is named: what differs.

    The likely causes come first.
    """

    python: Text
    image: Text = ""
    differences: tuple[EnvironmentDifference, ...] = ()


# How the reason begins where the base could not be set up.
SETUP_OF_BASE = "setup of the base"


class Interleaved(Struct, frozen=True, kw_only=True):
    """How base and head were launched in turns.

    ``ref`` is what was asked for, ``source`` its merge base with the head. ``suspects`` is how many
    pairs of workload and metric share the chance of a false alarm: counted once, after the screen.
    ``stopped`` says why no more pairs of launches followed, ``pairs`` how many there were.
    ``accepted`` names, by workload, the metrics of which this change has committed a new epoch:
    the base is known to differ there, and is not asked. ``dependencies`` are files that say which
    packages are installed, and that differ: both sides were launched with the same packages all the
    same. ``incomparable`` says, by workload, why the base was not launched:
    its own suite.toml makes other work of it, or cannot launch it. ``expected`` are the workloads
    that the base has: selected ones of its own suite, and of its tests those of the head.
    ``unmeasured`` says why the head does not measure a test that the base measures, "" where pytest
    no longer finds it. ``planted`` is what `ci-perf try` or `rehearse` had the head do more.
    ``environment`` is set where the base was launched by another Python or image. ``unlaunched``
    are workloads of which the first proven loss has saved every launch.
    """

    ref: Text
    source: Source
    suspects: Count
    budget_s: Seconds
    spent_s: Seconds
    stopped: Literal["decided", "budget", "proven", "interrupted"]
    pairs: Count = 0
    notes: tuple[Text, ...] = ()
    accepted: dict[Name, tuple[Name, ...]] = {}
    dependencies: tuple[RelativePath, ...] = ()
    incomparable: dict[Name, Text] = {}
    expected: tuple[Name, ...] = ()
    unmeasured: dict[Name, Text] = {}
    planted: Plant | None = None
    environment: OtherEnvironment | None = None
    unlaunched: tuple[Name, ...] = ()

    def refuse_experiment(self, label: str) -> None:
        """Refuse a run whose sides differ on purpose by more than code. Raises InvalidFileError."""
        if self.environment is not None:
            raise InvalidFileError(
                f"{label}: expected a base and a head with the same packages, found a base that "
                "another Python launched (--base-python, --base-image); measure again without it"
            )
        if self.planted is not None:
            raise InvalidFileError(
                f"{label}: expected the numbers of your code, found those of a plant: ci-perf made "
                f"{self.planted.workload} worse on purpose; measure again with `ci-perf run`"
            )


class Checks(Struct, frozen=True, kw_only=True):
    """How many checks of the same pull request have tested pairs ``before`` this one.

    They share the chance of a false alarm. ``None`` where nothing tells.
    """

    before: Count | None


class Earlier(Struct, frozen=True, kw_only=True):
    """Pairs that an earlier run of the same commits launched on the same machine.

    ``suspects`` and ``check`` are how many shared its chance of a false alarm, and its number among
    the checks of the pull request. ``said`` is what its pairs have said, by workload and metric.
    """

    run: Name
    started_at: Text
    check: AtLeastOne
    suspects: Count
    said: dict[Name, dict[Name, PairVerdict]]
    paired: tuple[Paired, ...]

    def __post_init__(self) -> None:
        for paired in self.paired:
            if len(paired.pairs) > MOST_PAIRS:
                raise ValueError(
                    f"{paired.workload}: expected at most {MOST_PAIRS} pairs, found "
                    f"{len(paired.pairs)}"
                )


class NodeSession(Struct, frozen=True, kw_only=True):
    """One session of a run: which node measured which workloads, when, and how quiet it was.

    ``run`` is the id that the session's own run had, ``unit`` that of its unit of work, empty for
    none. ``node`` is a hash of the host's name, or of CI_PERF_NODE, never the name itself.
    """

    run: Name
    unit: NameOrEmpty = ""
    node: NameOrEmpty
    started_at: Text
    duration_s: Seconds
    soft: Software
    image: Image | None = None
    validity: Validity
    canaries: tuple[Canary, ...] = ()
    workloads: tuple[Name, ...]


class Run(Struct, tag_field="type", tag="run", frozen=True, kw_only=True):
    """One session on one machine, or several that were merged: the whole of run.json.

    ``unit`` is the id of the unit of work that was measured, empty for none. ``merged_from`` are
    the sessions of a merged run, which together hold every workload but those that no node has
    measured; it has no ``canaries`` of its own, and ``duration_s`` is the sum of theirs.
    ``checks`` is ``None`` where the run belongs to no pull request. ``earlier`` are oldest first.
    ``same`` are workloads that were not launched, because head and base are the same program;
    ``touched`` says why others were. ``programs`` are the records that were made meanwhile.
    ``profiled`` is what a step does on both sides, of workloads that pairs show to have moved.
    ``waited_s`` went by until other runs had ended and the machine was quiet.
    """

    schema_version: int = SCHEMA_VERSION
    tool: Tool
    id: Name
    unit: NameOrEmpty = ""
    started_at: Text
    duration_s: Seconds
    waited_s: Seconds = 0.0
    source: Source
    suite: SuiteName
    selection: tuple[str, ...]
    environment: Environment
    validity: Validity
    canaries: tuple[Canary, ...] = ()
    measured: tuple[Measured, ...]
    failed: tuple[Failed, ...]
    interleaved: Interleaved | None = None
    paired: tuple[Paired, ...] = ()
    checks: Checks | None = None
    earlier: tuple[Earlier, ...] = ()
    same: tuple[SameProgram, ...] = ()
    touched: tuple[Touched, ...] = ()
    programs: tuple[Program, ...] = ()
    profiled: tuple[ProfiledPairs, ...] = ()
    merged_from: tuple[NodeSession, ...] = ()

    @property
    def sessions(self) -> tuple[NodeSession, ...]:
        """Return who measured what: the sessions of a merged run, else the one that this run is."""
        return self.merged_from or (
            NodeSession(
                run=self.id,
                unit=self.unit,
                node=self.environment.noted.host_hash,
                started_at=self.started_at,
                duration_s=self.duration_s,
                soft=self.environment.soft,
                image=self.environment.image,
                validity=self.validity,
                canaries=self.canaries,
                workloads=self.workloads(),
            ),
        )

    def refuse_experiment(self, label: str) -> None:
        """Refuse a run whose sides differ on purpose by more than code. Raises InvalidFileError."""
        if self.interleaved is not None:
            self.interleaved.refuse_experiment(label)

    def workloads(self) -> tuple[str, ...]:
        """Return the ids of all workloads: measured, failed, and the same program."""
        return tuple(
            each.workload for part in (self.measured, self.failed, self.same) for each in part
        )

    @property
    def check(self) -> int | None:
        """Number this run among the checks of its pull request, or the runs of its commits.

        ``None`` where neither is known.
        """
        known = [earlier.check for earlier in self.earlier]
        if self.checks and self.checks.before is not None:
            known.append(self.checks.before)
        return 1 + max(known) if known else None

    def __post_init__(self) -> None:
        """Refuse a workload that appears twice: nobody could say which of them is judged."""
        seen: set[str] = set()
        for name in self.workloads():
            if name in seen:
                raise ValueError(f"workload {name!r} appears twice")
            seen.add(name)
        self._check_paired(seen)
        self._check_sessions()

    def _check_sessions(self) -> None:
        """Refuse sessions of a merged run that leave open who measured a workload."""
        if not self.merged_from:
            return
        in_sessions = [name for session in self.merged_from for name in session.workloads]
        known, everything = set(in_sessions), set(self.workloads())
        without_numbers = {failed.workload for failed in self.failed}
        is_complete = known <= everything and everything - known <= without_numbers
        if not is_complete or len(known) < len(in_sessions):
            raise ValueError("merged_from: expected each workload in one session alone")
        if self.canaries:
            raise ValueError("canaries: expected none in a merged run (merged_from has them)")

    def _check_paired(self, known: set[str]) -> None:
        """Refuse pairs of which nobody could say whose they are, or against what."""
        names = [workload.workload for workload in self.paired]
        if names and self.interleaved is None:
            raise ValueError("expected interleaved to name the base of paired, found none")
        if len(set(names)) < len(names) or not known.issuperset(names):
            raise ValueError("paired: expected measured workloads, each once")
