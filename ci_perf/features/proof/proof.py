"""Prove a claim: check the suite until its pairs answer, then doubt what they say."""

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from ci_perf import session
from ci_perf.api_types import Notify
from ci_perf.errors import CiPerfError, UsageError
from ci_perf.features.proof import checks, claims
from ci_perf.features.proof.claims import Answer, Claim
from ci_perf.features.proof.receipt import MOST_CHARS, Check, ClaimResult, Receipt
from ci_perf.gate import arguments, compare, lab, measure, runners
from ci_perf.gate.commit_suite import RepositoryFolders
from ci_perf.gate.options import MeasureOptions
from ci_perf.judging import comparability, summarise
from ci_perf.judging.policy import LOOKS
from ci_perf.model import metrics
from ci_perf.model.comparison import Comparison
from ci_perf.model.environment import Machine
from ci_perf.model.run import Pair, Run, Tool
from ci_perf.model.suite import Plan
from ci_perf.report import provenance
from ci_perf.report.units import render_count
from ci_perf.session import Against, Listener, PairJudge
from ci_perf.session.lab import MachineChecks
from ci_perf.system import git
from ci_perf.version import __version__

# Of the session that doubts: the median of three says where a clock is.
_DOUBTING_PAIRS = 3
_LEAST_HZ = 1.0
_PROCESS = "process"
# An interval that nobody knows: JSON has no infinity.
_MOST = 1e18


class ClaimJudge(compare.BaselineJudge):
    """Judges as a check does, and asks for pairs until the claims have an answer, too."""

    def __init__(
        self,
        commit: str,
        folders: RepositoryFolders,
        sharing: int,
        *,
        asked: Sequence[Claim],
        has_history: bool = True,
    ) -> None:
        super().__init__(commit, folders, sharing, has_history=has_history)
        self._asked = asked

    def first_launches(self, plan: Plan, machine: Machine) -> dict[str, int]:
        """See PairJudge."""
        return super().first_launches(plan, machine) | {each.workload: 1 for each in self._asked}

    def undecided(self, run: Run) -> tuple[dict[str, float], int]:
        """See PairJudge. Raises UsageError where a claimed workload shows no result."""
        for each in run.measured:
            prints = [process.fingerprint for process in each.processes]
            is_asked = any(each.workload == claim.workload for claim in self._asked)
            if is_asked and prints and not any(map(comparability.numeric_values, prints)):
                raise UsageError(f"prove: {each.workload}: {checks.NO_RESULT}")
        left, suspects = super().undecided(run)
        measured = {each.workload for each in run.measured}
        for claim, answer in answer_claims(run, self._asked).items():
            if answer.holds is None and claim.workload in measured:
                look = next(look for look in LOOKS if look > answer.pairs)
                left = {claim.workload: float(look - answer.pairs)} | left
        return left, suspects


@dataclass(slots=True)
class _FewPairs(PairJudge):
    """Asks for some pairs of each workload, and judges nothing."""

    def first_launches(self, plan: Plan, machine: Machine) -> dict[str, int]:
        """See PairJudge."""
        del machine
        return {workload.id: 1 for workload in plan.workloads}

    def undecided(self, run: Run) -> tuple[dict[str, float], int]:
        """See PairJudge."""
        done = {each.workload for each in run.paired if len(each.pairs) >= _DOUBTING_PAIRS}
        left = (each.workload for each in run.measured if each.workload not in done)
        return dict.fromkeys(left, 1.0), 1


def answer_claims(run: Run, asked: Sequence[Claim]) -> dict[Claim, Answer]:
    """Answer each claim by the pairs of its workload."""
    answers = dict.fromkeys(asked, Answer(holds=None))
    subjects = {each.workload: each for each in summarise.run(run, label="").subjects}
    for claim in asked:
        subject = subjects.get(claim.workload)
        if subject and subject.paired:
            _, pairs = claim.find_pairs(subject.paired.pairs)
            answers[claim] = claims.decide(claim, pairs, claims=len(asked))
    return answers


def prove(
    asked: Mapping[str, Any],
    *,
    faster: Sequence[str],
    less_memory: Sequence[str],
    because: str,
    notify: Notify,
    listener: Listener,
) -> Receipt:
    """Measure the suite beside its base, and say whether each claim of less time or memory holds.

    `asked` are options of a measurement, `because` the author's reason for less work. Raises
    UsageError, InvalidFileError and other CiPerfErrors, and KeyboardInterrupt.
    """
    said = claims.read_claims(faster, less_memory)
    options = arguments.measure_options(None, {**asked, "explain_s": 0.0})
    if len(because) > MOST_CHARS:
        raise UsageError(
            f"--because: expected at most {MOST_CHARS} characters, found {len(because)}"
        )
    if git.source(options.root).dirty:
        raise UsageError("prove: expected a commit, found changed files; next: git commit")
    plan = measure.plan(options, has_tests=True)
    _check_claimed(plan, said)
    run = measure.measure_plan(
        plan,
        options,
        baselines=options.baselines,
        notify=notify,
        listener=listener,
        make_judge=functools.partial(ClaimJudge, asked=said),
    )
    if (reason := run.validity.against("")) is not None:
        raise CiPerfError(f"nothing holds on this machine now: {reason.detail}")
    comparison = compare.with_baselines(
        run, options, label=f"run {run.id}", fail_on="likely", notify=notify
    )
    proof = _Proof(options, plan, said, because, run, comparison, notify, listener)
    return proof.make_receipt()


def _check_claimed(plan: Plan, asked: Sequence[Claim]) -> None:
    """Refuse claims that nobody can prove. Raises UsageError."""
    launches = {workload.id: workload.launch for workload in plan.workloads}
    for claim in asked:
        launch = launches.get(claim.workload)
        if launch is None:
            known = ", ".join(launches)
            raise UsageError(f"{claim.text}: expected one of {known}, found {claim.workload}")
        if launch != _PROCESS:
            raise UsageError(
                f"{claim.text}: expected a workload whose step ci_perf times in one process, "
                f"found one that is launched as {launch}"
            )


@dataclass(frozen=True, slots=True)
class _Proof:
    """What is known after the check of the suite."""

    options: MeasureOptions
    plan: Plan
    claims: Sequence[Claim]
    because: str
    run: Run
    comparison: Comparison
    notify: Notify
    listener: Listener

    def make_receipt(self) -> Receipt:
        """Ask all that has to hold, up to the first that does not."""
        assert self.run.interleaved is not None
        answers = answer_claims(self.run, self.claims)
        runs = [self.run]
        made = tuple(
            checks.first_failure([lambda: self._ask_run(answers), lambda: self._doubt(runs)])
        )
        return Receipt(
            tool=Tool(version=__version__),
            holds=all(each.holds for each in made),
            suite=self.run.suite,
            base=self.run.interleaved.source.commit,
            head=self.run.source.commit,
            machine=provenance.machine(self.run.environment.hard)[:MOST_CHARS],
            measured_at=self.run.started_at,
            claims=tuple(_describe(claim, answers[claim], self.run) for claim in self.claims),
            checks=made,
            because=self.because,
            fingerprint=checks.digest(runs, self._names),
            open=tuple(self._list_open(runs)),
        )

    @property
    def _names(self) -> list[str]:
        return list(dict.fromkeys(claim.workload for claim in self.claims))

    def _ask_run(self, answers: Mapping[Claim, Answer]) -> Iterator[Check]:
        """Ask what the check of the suite has shown."""
        changed, of_suite = self._list_changed(), self.options.of_suite(self.plan.suite)
        folder = of_suite and self._inside / of_suite
        below = [name for name in changed if folder and PurePosixPath(name).is_relative_to(folder)]
        yield checks.check_gate(self.comparison)
        yield checks.check_workloads(self.run, self.claims, below)
        yield checks.check_inputs(changed)
        yield checks.check_results(self.comparison, self.claims)
        for name in self._names:
            yield checks.check_work(_find_pairs(self.run, name), self.because)
        for claim in self.claims:
            yield checks.check_claim(claim, answers[claim])
            yield checks.check_waiting(_find_pairs(self.run, claim.workload), claim, self.because)
        yield checks.check_others(self.comparison, self.claims)

    def _doubt(self, runs: list[Run]) -> Iterator[Check]:
        """Launch pairs with another seed, each launch alone, so that a clock outside can tell."""
        self.notify("the claim holds so far; now with another seed, and by a clock outside")
        runs.append(self._measure_again())
        folder, machine = self.options.workloads, self.run.environment.hard
        rules = compare.rules(folder, self.plan.suite, machine=machine, notify=self.notify)
        for claim in self.claims:
            pairs = _find_pairs(runs[-1], claim.workload)
            tolerance = rules.limits.of(claim.workload)[metrics.FINGERPRINT].relative
            yield checks.check_seed(pairs, claim.workload, tolerance)
            if claim.is_time:
                yield checks.check_clock(pairs, claim, _find_share(claim, pairs))

    def _measure_again(self) -> Run:
        """Measure the claimed workloads beside the base with the next seed."""
        options = dataclasses.replace(self.options, select=tuple(self._names), output=None)
        plan = _with_next_seed(measure.plan(options))
        with lab.open(plan, options, self.notify, self.listener) as here:
            assert here.base is not None
            here.checks = MachineChecks(has_room=lambda *_: False)
            here.wait_s = 0.0  # it was awaited
            of_base = here.base.plan and _with_next_seed(here.base.plan)
            against = Against(
                checkout=dataclasses.replace(here.base, plan=of_base),
                budget_s=options.budget_s,
                judge=_FewPairs(),
                routes=True,
            )
            run = session.measure(here, plan, against=against)
            here.interrupts.check()
            self.notify(f"{render_count(sum(len(each.pairs) for each in run.paired), 'pair')} done")
            return run

    @property
    def _inside(self) -> Path:
        """The folder of the project in its repository."""
        root = Path(self.options.root).resolve()
        return root.relative_to(git.find_top(root))

    def _list_changed(self) -> list[str]:
        """Name the files of the repository that differ between base and head."""
        assert self.run.interleaved is not None
        top = git.find_top(Path(self.options.root))
        sides = (self.run.interleaved.source.commit, self.run.source.commit)
        listed = git.read(top, "diff", "--name-only", "--no-renames", "-z", *sides)
        return [name for name in listed.decode("utf-8", "replace").split("\0") if name]

    def _list_open(self, runs: Sequence[Run]) -> Iterator[str]:
        """Say what nobody could exclude."""
        if self.options.runner.kind == runners.LOCAL:
            yield "code of the head that writes into ci_perf or the machine; next: --runner docker"
        for name in self._names:
            prints = {each.head.fingerprint for run in runs for each in _find_pairs(run, name)}
            if len(runs) > 1 and len(prints) == 1:
                yield f"{name}: numbers that are no computation: another seed gives the same"[
                    :MOST_CHARS
                ]


def _with_next_seed(plan: Plan) -> Plan:
    workloads = []
    for each in plan.workloads:
        protocol = msgspec.structs.replace(
            each.protocol,
            seed=each.protocol.seed + 1,
            monitor_hz=max(each.protocol.monitor_hz, _LEAST_HZ),
        )
        workloads.append(msgspec.structs.replace(each, protocol=protocol))
    return msgspec.structs.replace(plan, workloads=tuple(workloads))


def _find_pairs(run: Run, workload: str) -> Sequence[Pair]:
    return next((each.pairs for each in run.paired if each.workload == workload), ())


def _find_share(claim: Claim, pairs: Sequence[Pair]) -> float:
    """Return the claim as a share of the base's step."""
    if claim.size.relative:
        return claim.size.relative
    steps_s = [step for pair in pairs for step in pair.base.timed.block_s]
    return claim.size.absolute * len(steps_s) / sum(steps_s) if steps_s else 0.0


def _describe(claim: Claim, answer: Answer, run: Run) -> ClaimResult:
    subjects = {each.workload: each for each in summarise.run(run, label="").subjects}
    subject = subjects.get(claim.workload)
    metric, _ = claim.find_pairs(subject.paired.pairs if subject and subject.paired else ())
    size = claim.size
    return ClaimResult(
        workload=claim.workload,
        metric=metric.name,
        claimed=size.relative or size.absolute,
        gain=answer.gain,
        low=max(answer.low, -_MOST),
        high=min(answer.high, _MOST),
        unit="share" if size.relative else "s" if claim.is_time else "B",
        pairs=answer.pairs,
        certainty=round(answer.certainty, 4),
    )
