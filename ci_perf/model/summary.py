"""What the judge sees of one side: one number per process and metric, however it was stored."""

from ci_perf.model.base import (
    Count,
    Name,
    NameOrEmpty,
    Scalar,
    Seconds,
    Statistic,
    Struct,
    SuiteName,
    Text,
)
from ci_perf.model.container import Image
from ci_perf.model.environment import Machine, Software
from ci_perf.model.explanation import ProfiledPairs
from ci_perf.model.process import Fingerprint, Profile
from ci_perf.model.program import SameProgram, Touched
from ci_perf.model.run import Checks, Failed, Interleaved, PairVerdict, Source
from ci_perf.model.validity import Validity

Numbers = dict[str, float]
"""Metric name to value, in the metric's unit; a metric that the machine lacks is absent."""


class SessionNumbers(Struct, frozen=True, kw_only=True):
    """The processes of one workload in one session, in launch order.

    ``fingerprints`` holds each different one once. ``canaries`` are seconds by name, or by "NAME
    POSITION" where the positions are known. ``epochs`` counts, per metric, the accepted changes
    that came before; absent is 0. ``node`` is empty where it is not known.
    """

    commit: Text
    recorded_at: Text
    node: NameOrEmpty = ""
    soft: Software
    processes: tuple[Numbers, ...]
    fingerprints: tuple[Fingerprint, ...] = ()
    canaries: Numbers = {}
    epochs: dict[Name, Count] = {}


class EarlierPairs(Struct, frozen=True, kw_only=True):
    """The pairs of one workload that an earlier run of the same commits launched.

    ``said`` is what they have said, by metric.
    """

    run: Name
    pairs: tuple[tuple[Numbers, Numbers], ...]
    said: dict[Name, PairVerdict]


class PairedNumbers(Struct, frozen=True, kw_only=True):
    """What the base and the head of one workload showed when they were launched in turns.

    ``pairs`` are (base, head) in launch order. ``own_file``: the base ran a workload file of its
    own. ``failure`` is why the base could not be launched, or not any more. ``earlier`` runs of the
    same commits stand oldest first.
    """

    pairs: tuple[tuple[Numbers, Numbers], ...]
    base_fingerprints: tuple[Fingerprint, ...] = ()
    own_file: bool = False
    failure: Text = ""
    earlier: tuple[EarlierPairs, ...] = ()


class Subject(Struct, frozen=True, kw_only=True):
    """One workload on one side; ``sessions`` oldest first.

    ``threads`` is as `run.Measured` describes them; empty where that is not known.
    """

    workload: Name
    parameters: dict[str, Scalar]
    items_per_step: float
    item_unit: Name
    statistic: Statistic
    threads: Text = ""
    machine: Machine
    sessions: tuple[SessionNumbers, ...]
    paired: PairedNumbers | None = None

    def list_pairs(self) -> list[tuple[Numbers, Numbers]]:
        """Return the numbers of both sides of each pair, those of earlier runs first."""
        if self.paired is None:
            return []
        return [*(pair for run in self.paired.earlier for pair in run.pairs), *self.paired.pairs]


class Cost(Struct, frozen=True, kw_only=True):
    """What a run has taken: ``launches`` that ended well, and ``launched_s`` of all ranks.

    ``held_s`` is how long the machine was its own, ``waited_s`` how long it waited. ``saved`` are
    workloads that needed no launch: both sides are the same program.
    """

    started_at: Text
    launches: Count
    launched_s: Seconds
    held_s: Seconds
    waited_s: Seconds
    saved: Count


class Summary(Struct, frozen=True, kw_only=True):
    """One side of a comparison.

    ``label`` says in words where the numbers come from (a folder of baselines, a run file).
    ``selection`` is empty when the whole suite was meant to be there. ``machine`` is known although
    no subject may have numbers. ``image`` is that of a run in containers. ``check`` numbers it
    among the checks of a pull request, ``None`` where that is not known. ``same`` are workloads
    without numbers: both sides are one program. ``profiled`` is what a step does on both sides.
    """

    label: Text
    source: Source
    run: Text
    suite: SuiteName
    selection: tuple[str, ...]
    validity: Validity
    subjects: tuple[Subject, ...]
    failed: tuple[Failed, ...]
    machine: Machine | None = None
    image: Image | None = None
    interleaved: Interleaved | None = None
    checks: Checks | None = None
    check: Count | None = None
    profiles: tuple[Profile, ...] = ()
    same: tuple[SameProgram, ...] = ()
    touched: tuple[Touched, ...] = ()
    profiled: tuple[ProfiledPairs, ...] = ()
    cost: Cost | None = None
