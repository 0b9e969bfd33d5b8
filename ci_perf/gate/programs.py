"""Prove that head and base run the same program, by records of what a program takes."""

import contextlib
import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ci_perf import suite
from ci_perf.baselines import layout
from ci_perf.errors import CiPerfError, UsageError
from ci_perf.gate import Notify, commit_suite
from ci_perf.judging import comparability
from ci_perf.model.program import Program, SameProgram, Touched, TouchedCode
from ci_perf.model.suite import Plan, PlannedWorkload, Protocol
from ci_perf.model.task import MachineDescription
from ci_perf.program import proof
from ci_perf.program.proof import conditions_digest
from ci_perf.program.tree_sources import FolderTree
from ci_perf.program.trees import IncomparableError, Tree
from ci_perf.system import files
from ci_perf.worktree import Checkout

# Branches that are checked in turns each keep theirs; reading one takes milliseconds.
_KEPT = 20

Answer = SameProgram | Touched


def cache_folder(suite: str) -> Path:
    """Return the folder of the records of a suite, in the cache of the user."""
    return files.cache_folder() / "programs" / suite.replace(":", "-")


class ProgramCache:
    """The records of one suite that this machine has made: files in the cache of the user.

    What cannot be read or written is said, and loses nothing else. A record that holds for no
    commit any more does no harm: it is compared before it is believed.
    """

    def __init__(self, folder: Path, notify: Notify) -> None:
        self._folder = folder
        self._notify = notify

    def newest_first(self, workload: str) -> Iterator[Program]:
        """Yield the records of a workload."""
        for file in self._files(workload):
            try:
                yield files.read(file, Program)
            except CiPerfError as error:
                self._notify(f"note: a kept record of {workload} is not used: {error}")

    def keep(self, program: Program) -> None:
        """Write a record, and remove the oldest ones of its workload."""
        text = msgspec.json.encode(program)
        file = self._folder / program.workload / f"{hashlib.sha256(text).hexdigest()[:16]}.json"
        try:
            files.make_folder(file.parent)
            files.write(file, program)
            for old in self._files(program.workload)[_KEPT:]:
                old.unlink(missing_ok=True)
        except (CiPerfError, OSError) as error:
            self._notify(f"note: the record of {program.workload} is not kept: {error}")

    def _files(self, workload: str) -> list[Path]:
        ages: list[tuple[int, Path]] = []
        for file in (self._folder / workload).glob("*.json"):
            with contextlib.suppress(OSError):  # another process has removed it meanwhile
                ages.append((file.stat().st_mtime_ns, file))
        return [file for _, file in sorted(ages, reverse=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseSide:
    """What a workload of the base is: its files, and what its suite.toml makes of them.

    ``dependencies`` are files that say which packages are installed, and that differ in the head.
    """

    tree: Tree
    plan: Plan
    dependencies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prover:
    """Compares records with the checkouts of both sides. See session.SamenessProver.

    Without a ``base`` nothing is compared, and everything is measured. ``baselines`` are those of
    the base, if any. ``may_record`` says whether launches may be spent on records. The ``cache`` is
    read where nothing passes by it (``believes_cache``): measured code can write there, too.
    """

    plan: Plan
    head: Tree
    baselines: Path
    cache: ProgramCache
    base: BaseSide | None
    may_record: bool = True
    believes_cache: bool = True

    def known(self, workload: PlannedWorkload, machine: MachineDescription) -> Answer | None:
        """Answer by the committed record, or by one that this machine has kept if that counts."""
        if self.base is None:
            return touched(workload, "asked", "everything was to be measured")
        reason = self._other_settings(workload, machine, self.base.plan)
        if reason := reason or self._other_packages(workload, machine, self.base.dependencies):
            return touched(workload, "conditions", reason)
        obstacle: Touched | None = None
        unfit = ""
        for program in self._records(workload, machine):
            if why := self._unfit(workload, machine, program, self.base.tree):
                unfit = unfit or f": {why}"
                continue
            answer = self.by_record(workload, program)
            if isinstance(answer, SameProgram) or answer.code != "obstacle":
                return answer
            obstacle = obstacle or answer
        if obstacle or self.may_record:
            return obstacle
        detail = f"no record of the base's program holds here{unfit}"
        return touched(workload, "not_recorded", detail)

    def by_record(self, workload: PlannedWorkload, program: Program) -> Answer:
        """Compare the head with a record that holds for the base."""
        if program.obstacles:
            return touched(workload, "obstacle", program.obstacles[0])
        if difference := proof.first_difference(program, self.head):
            return touched(
                workload,
                "differs",
                difference.detail,
                path=difference.path,
                unit=difference.unit,
            )
        counts = proof.counts(program)
        return SameProgram(
            workload=workload.id,
            parameters=workload.parameters,
            functions=counts.functions,
            files=counts.files,
            data_files=counts.data_files,
        )

    def of_head(self, workload: PlannedWorkload, machine: MachineDescription) -> Program | None:
        """Return a record that there is, if it holds."""
        for program in self._records(workload, machine):
            if not self._unfit(workload, machine, program, self.head):
                return program
        return None

    def keep(
        self, workload: PlannedWorkload, machine: MachineDescription, program: Program, root: Path
    ) -> Program:
        """Add what only the parent knows, and keep the record."""
        complete = msgspec.structs.replace(
            program, conditions=_conditions(workload, machine, self.plan, root)
        )
        try:
            inputs = proof.inputs_digest(FolderTree(root), workload.inputs)
            complete = msgspec.structs.replace(complete, inputs=inputs)
        except IncomparableError as error:
            obstacles = (*program.obstacles, str(error))
            complete = msgspec.structs.replace(complete, obstacles=obstacles)
        self.cache.keep(complete)
        return complete

    def _records(self, workload: PlannedWorkload, machine: MachineDescription) -> Iterator[Program]:
        of_baseline = layout.read_program(
            self.baselines, machine.environment.hard, self.plan.suite, workload.id
        )
        kept = self.cache.newest_first(workload.id) if self.believes_cache else ()
        return itertools.chain([of_baseline] if of_baseline else [], kept)

    def _unfit(
        self,
        workload: PlannedWorkload,
        machine: MachineDescription,
        program: Program,
        side: Tree,
    ) -> str:
        """Say why a record does not describe a side as it is, here and now; "" if it does."""
        wanted = _conditions(workload, machine, self.plan, Path(self.plan.root))
        # An obstacle makes it prove nothing; it describes the base all the same.
        program = msgspec.structs.replace(program, obstacles=())
        why = proof.other_conditions(program, wanted, machine.variables)
        if why := why or proof.outside_difference(program):
            return why
        difference = proof.first_difference(program, side)
        return difference.detail if difference else ""

    def _other_settings(
        self, workload: PlannedWorkload, machine: MachineDescription, before: Plan
    ) -> str:
        """Say how the suite of the base launches a workload differently; "" if it does not."""
        known = [of_base for of_base in before.workloads if of_base.id == workload.id]
        if not known:
            return "the suite of the base has no such workload"
        if before.container != self.plan.container:
            return "the container in suite.toml is not that of the base"
        of_base = _conditions(known[0], machine, before, Path(before.root))
        of_head = _conditions(workload, machine, self.plan, Path(self.plan.root))
        is_same = of_base == of_head and _are_as_long(known[0].protocol, workload.protocol)
        return "" if is_same else "its settings in suite.toml are not those of the base"

    def _other_packages(
        self, workload: PlannedWorkload, machine: MachineDescription, dependencies: tuple[str, ...]
    ) -> str:
        """Say that the head may have brought other packages than the base had; "" if it has not."""
        if not dependencies:
            return ""
        hard = machine.environment.hard
        file = layout.path(self.baselines, hard, self.plan.suite, workload.id)
        known = layout.read(file).sessions[-1].soft if file.is_file() else None
        if known is not None and not comparability.have_other_packages(
            known, machine.environment.soft
        ):
            return ""
        return (
            f"{dependencies[0]} differs, and the installed packages are not those of the baseline"
            if known
            else f"{dependencies[0]} differs, and no baseline says which packages the base had"
        )


def base_plan(plan: Plan, workloads: Path, checkout: Checkout) -> Plan:
    """Return the suite as the base has it; without workloads where it has none.

    Raises CiPerfError.
    """
    folder = commit_suite.folder_below(Path(plan.root), plan.suite, workloads)
    if folder is None:
        return plan
    if commit_suite.has_suite(FolderTree(checkout.root), folder):
        with contextlib.suppress(UsageError):  # the head has added the suite to the file
            return suite.plan(checkout.root / folder, plan.suite, root=checkout.root)
    return msgspec.structs.replace(plan, workloads=())


def _are_as_long(base: Protocol, head: Protocol) -> bool:
    """Whether launches do as many steps: a later one may be of another kind.

    The number of launches, and what a calibration sets, are not the suite's.
    """
    kept = {name: getattr(head, name) for name in ("processes", "launch_spread", "statistic")}
    return msgspec.structs.replace(base, **kept) == head


def _conditions(
    workload: PlannedWorkload, machine: MachineDescription, plan: Plan, root: Path
) -> str:
    return conditions_digest(
        machine.environment,
        workload,
        root=root,
        python_path=plan.python_path,
        setup=plan.setup,
    )


def touched(
    workload: PlannedWorkload, code: TouchedCode, detail: str, *, path: str = "", unit: str = ""
) -> Touched:
    """Say why a workload is measured."""
    return Touched(workload=workload.id, code=code, detail=detail, path=path, unit=unit)
