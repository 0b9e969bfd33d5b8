"""Which workloads can have changed, by committed records alone: nothing is launched or imported.

Driver, packages and machine cannot be seen here. They are believed to be as in the newest session.
"""

import dataclasses
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from ci_perf import suite
from ci_perf.api_types import Notify
from ci_perf.baselines import layout
from ci_perf.errors import CiPerfError, UsageError
from ci_perf.features.screen import shared_files
from ci_perf.features.screen.shared_files import WorkflowText
from ci_perf.gate import commit_suite, compare
from ci_perf.gate.commit_suite import RepositoryFolders
from ci_perf.model.baseline import Baseline
from ci_perf.model.comparison import Comparison, Verdict
from ci_perf.model.environment import Environment, GpuMachine, Noted
from ci_perf.model.program import (
    NATIVE_VARIABLES,
    SET_BY_LAUNCH,
    Program,
    SameProgram,
    Touched,
    TouchedWorkloads,
    digest,
)
from ci_perf.model.run import Run, Tool
from ci_perf.model.suite import Plan, PlannedWorkload
from ci_perf.model.validity import Status, Validity
from ci_perf.program.tree_sources import GitTree
from ci_perf.same_program import proof
from ci_perf.same_program.records import touch
from ci_perf.system import git
from ci_perf.version import __version__
from ci_perf.worktree import merge_base

# How far the clocks of two machines may be apart.
_CLOCKS_DIFFER = timedelta(minutes=5)
_LAUNCHES = {"command": "a command is always measured", "fork": "a test is always measured"}

ReadBaseline = Callable[[str], tuple[Baseline, Program | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenOptions(RepositoryFolders):
    """What is asked; without a ``suite``, of the usual one.

    ``machine`` is the folder of its baselines, "" for the only one; ``device`` is where the job
    that follows measures.
    ``variables`` are those that the workflow gives to each launch, "" for one that is not set.
    """

    against: str
    suite: str
    machine: str
    device: str = "auto"
    variables: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenAnswer:
    """The answer, and the comparison to report where nothing has to be launched."""

    workloads: TouchedWorkloads
    comparison: Comparison | None = None

    @property
    def word(self) -> str:
        """What a workflow is told."""
        return "launch" if self.comparison is None else "same"


def screen(options: ScreenOptions, *, now: datetime, notify: Notify) -> ScreenAnswer:
    """Compare the commit that is checked out with its merge base. Raises UsageError.

    What cannot be known has to be launched, and the answer says why.
    """
    name = suite.choose(options.root / options.workloads, options.suite)
    plan = suite.plan(options.workloads, name, root=options.root)
    try:
        return _compare_commits(plan, options, now, notify)
    except UsageError:
        raise
    except (CiPerfError, OSError) as error:  # what cannot be read cannot be called the same
        return _launch_all(plan, options.against, str(error))


def _launch_all(plan: Plan, base: str, why: str) -> ScreenAnswer:
    every = (*plan.workloads, *plan.tests)
    touched = tuple(touch(each, "differs", why) for each in every)
    return ScreenAnswer(
        workloads=TouchedWorkloads(suite=plan.suite, base=base, same=(), touched=touched)
    )


def _compare_commits(
    plan: Plan, options: ScreenOptions, now: datetime, notify: Notify
) -> ScreenAnswer:
    start = merge_base.find(options.root, options.against)
    if git.source(options.root).dirty:
        raise CiPerfError("uncommitted changes are no commit that could be compared")
    workflows = shared_files.read_workflows(start)
    if why := shared_files.find_difference(start, plan, workflows):
        return _launch_all(plan, start.commit, why)
    base, head = (commit_suite.tree_of(options.root, each) for each in (start.commit, "HEAD"))
    folder = options.of_suite(plan.suite)
    before = plan if folder is None else commit_suite.find_plan(base, folder, plan.suite)
    known = {each.id for each in (*before.workloads, *before.tests)} if before else set()
    if removed := sorted(known - {each.id for each in (*plan.workloads, *plan.tests)}):
        return _launch_all(plan, start.commit, f"the head has no workload {removed[0]} any more")
    with commit_suite.baselines_of_tree(base, options, plan.suite, records=True) as baselines:
        read = _find_machine(baselines, plan.suite, options.machine)
        rules = _Rules(options, plan, workflows, now, base, head)
        answers = [rules.find_answer(each, read) for each in (*plan.workloads, *plan.tests)]
        same = tuple(each for each in answers if isinstance(each, SameProgram))
        workloads = TouchedWorkloads(
            suite=plan.suite,
            base=start.commit,
            same=same,
            touched=tuple(each for each in answers if isinstance(each, Touched)),
        )
        if workloads.touched:
            return ScreenAnswer(workloads=workloads)
        newest = read(same[0].workload)[0]
    comparison = _judge(workloads, options, now, newest, notify)
    if comparison.verdict is not Verdict.UNCHANGED:
        return _launch_all(plan, start.commit, f"the report would be {comparison.verdict.value}")
    return ScreenAnswer(workloads=workloads, comparison=comparison)


def _find_machine(baselines: Path, suite: str, machine: str) -> ReadBaseline:
    """Return what reads the baseline of a workload, and its record. Raises CiPerfError."""
    pattern = f"{machine or '*'}/{layout.folder_name(suite)}"
    folders = sorted(each for each in baselines.glob(pattern) if any(each.glob("*.json")))
    if len(folders) != 1:
        names = ", ".join(each.parent.name for each in folders) or "none"
        raise CiPerfError(
            f"expected the base to have baselines of {machine or 'one machine'} for {suite}, found "
            f"{names}; of several, `--machine` names one folder"
        )

    def read(workload: str) -> tuple[Baseline, Program | None]:
        baseline = layout.read(folders[0] / f"{workload}.json")
        program = layout.program_of_newest_session(baselines, baseline.machine, suite, workload)
        return baseline, program

    return read


@dataclass(frozen=True, slots=True)
class _Rules:
    """What holds for each workload of a suite."""

    options: ScreenOptions
    plan: Plan
    workflows: WorkflowText
    now: datetime
    base: GitTree
    head: GitTree

    def find_answer(self, workload: PlannedWorkload, read: ReadBaseline) -> SameProgram | Touched:
        """Return why a workload has to be launched, or what both commits agree in."""
        if why := _LAUNCHES.get(workload.launch):
            return touch(workload, "obstacle", why)
        try:
            baseline, program = read(workload.id)
            if program is None:
                return touch(workload, "not_recorded", "the base has no record of its program")
            if program.obstacles:
                return touch(workload, "obstacle", program.obstacles[0])
            if why := next(self._find_other_conditions(workload, baseline, program), ""):
                return touch(workload, "conditions", why)
            for tree, of_base in ((self.base, "the record is not of the base: "), (self.head, "")):
                if why := proof.find_difference(program, tree, self.base):
                    return touch(workload, "differs", f"{of_base}{why}")
        except (CiPerfError, OSError) as error:
            return touch(workload, "not_recorded", str(error))
        return SameProgram(
            workload=workload.id,
            believed=baseline.sessions[-1].recorded_at,
            parameters=workload.parameters,
            files=sum(state.startswith(("file ", "code ")) for state in program.paths.values()),
        )

    def _find_other_conditions(
        self, workload: PlannedWorkload, baseline: Baseline, program: Program
    ) -> Iterator[str]:
        session = baseline.sessions[-1]
        device = self.options.device if self.options.device != "auto" else self.plan.device
        # By `auto`, a machine with a GPU measures there what a record of a CPU knows nothing of.
        kinds = ("cuda", "auto") if isinstance(baseline.machine, GpuMachine) else ("cpu",)
        if device.partition(":")[0] not in kinds:
            yield f"the record is of a machine with {kinds[0]}, and `--device` is {device}"
        if program.settings != proof.digest_settings(workload, self.plan, self.options.root):
            yield "its settings, or the version of ci_perf, are not those of the record"
        age = self.now - _read_time(session.recorded_at)
        if not -_CLOCKS_DIFFER <= age <= timedelta(hours=int(self.plan.fresh[:-1])):
            yield (
                f"its newest session, of {session.recorded_at}, is older than {self.plan.fresh} "
                "(`fresh` in suite.toml)"
            )
        _, pinned, image = (session.soft.image or "").partition("@sha256:")
        texts = (self.workflows.text, self.plan.container.image)
        if session.soft.image and not (
            pinned and any(f"{pinned}{image}" in text for text in texts)
        ):
            yield "neither suite.toml nor a workflow names the digest of its image"
        yield from self._find_other_variables(program)

    def _find_other_variables(self, program: Program) -> Iterator[str]:
        for name, value in program.variables.items():
            if name in self.options.variables:
                given = self.options.variables[name]
                if value != (digest(given.encode()) if given else ""):
                    yield f"it read the variable {name}, which has another value now"
            elif value:
                yield f"it read the variable {name}: tell its value (--env {name}=VALUE)"
            elif self.workflows.name(name):
                yield f"it looked for the variable {name}, which a workflow names"
        for name in self.options.variables.keys() - program.variables.keys() - SET_BY_LAUNCH:
            if self.options.variables[name] and name.startswith(NATIVE_VARIABLES):
                yield f"the variable {name} is new"


def _read_time(text: str) -> datetime:
    """Return when a session was recorded. Raises CiPerfError."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise CiPerfError(f"expected the time of a session, found {text!r}") from None
    if time.tzinfo is None:
        raise CiPerfError(f"expected the time of a session with its time zone, found {text!r}")
    return time


def _judge(
    workloads: TouchedWorkloads,
    options: ScreenOptions,
    now: datetime,
    newest: Baseline,
    notify: Notify,
) -> Comparison:
    """Judge a run that has launched nothing, on the machine that is believed.

    By the baselines of the checkout, which are those of the base.
    """
    run = Run(
        tool=Tool(version=__version__),
        id=uuid.uuid4().hex[:12],  # `history --cost` counts each once
        started_at=now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        duration_s=0.0,
        source=git.source(options.root),
        suite=workloads.suite,
        selection=(),
        environment=Environment(
            hard=newest.machine,
            soft=newest.sessions[-1].soft,
            noted=Noted(host_hash="", memory_total_bytes=0, load_average=0.0, allocator=""),
        ),
        validity=Validity(status=Status.VALID),
        measured=(),
        failed=(),
        same=workloads.same,
    )
    root, machine = options.baselines, newest.machine
    rules = compare.rules(options.workloads, run.suite, root, machine, notify=notify)
    known = tuple(each.workload for each in run.same)
    rules = dataclasses.replace(rules, expected=known, known=known)
    return compare.against_baselines(run, root, label="screen", rules=rules)
