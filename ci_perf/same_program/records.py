"""Find out by records whether a workload uses the same files on both sides."""

import contextlib
import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ci_perf.api_types import Notify
from ci_perf.baselines import layout
from ci_perf.errors import CiPerfError
from ci_perf.judging import comparability
from ci_perf.model.base import MAX_ERROR_CHARS
from ci_perf.model.process import Process
from ci_perf.model.program import Program, SameProgram, Touched, TouchedCode, join_programs
from ci_perf.model.suite import Plan, PlannedWorkload
from ci_perf.model.task import MachineDescription
from ci_perf.program.tree_sources import FolderTree
from ci_perf.program.trees import IncomparableError, Tree
from ci_perf.same_program import proof
from ci_perf.system import files

# Branches that are checked in turns each keep theirs; reading one takes milliseconds.
_KEPT = 20

Answer = SameProgram | Touched


class RecordCache:
    """The records of one suite that this machine has made: files in the cache of the user.

    What cannot be read or written is said, and loses nothing else. A record that holds for no
    commit any more does no harm: it is compared before it is believed.
    """

    def __init__(self, suite: str, notify: Notify) -> None:
        self._folder = files.cache_folder() / "programs" / suite.replace(":", "-")
        self._notify = notify

    def read_newest_first(self, workload: str) -> Iterator[Program]:
        """Yield the records of a workload."""
        for file in self._find_files(workload):
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
            for old in self._find_files(program.workload)[_KEPT:]:
                old.unlink(missing_ok=True)
        except (CiPerfError, OSError) as error:
            self._notify(f"note: the record of {program.workload} is not kept: {error}")

    def _find_files(self, workload: str) -> list[Path]:
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
class Records:
    """Compares records with the files of both sides.

    Without a ``base`` nothing is compared, and everything is measured. ``baselines`` are those of
    the base, if any. What lets a change pass does not believe the ``cache``: measured code can
    write there.
    """

    plan: Plan
    head: Tree
    baselines: Path
    cache: RecordCache
    base: BaseSide | None
    believes_cache: bool = True

    def find_answer(self, workload: PlannedWorkload, machine: MachineDescription) -> Answer:
        """Answer by a record that there is; "not_recorded" if only a new one could tell."""
        if self.base is None:
            return touch(workload, "asked", "everything was to be measured")
        if workload.launch == "fork":
            return touch(workload, "obstacle", "its launches are forked, which no record covers")
        if reason := self._find_other_settings(workload, machine, self.base):
            return touch(workload, "conditions", reason)
        why = ""
        for program in self._read_records(workload, machine):
            misfit = self._explain_misfit(workload, machine, program, self.base.tree)
            if not misfit:
                return self.compare(workload, program)
            why = why or f": {misfit}"
        detail = f"no record of the base's program holds here{why}"
        return touch(workload, "not_recorded", detail)

    def compare(self, workload: PlannedWorkload, program: Program) -> Answer:
        """Compare the head with a record that holds for the base."""
        if program.obstacles:
            return touch(workload, "obstacle", program.obstacles[0])
        sources = self.base.tree if self.base else None
        if difference := proof.find_difference(program, self.head, sources):
            return touch(workload, "differs", difference)
        return SameProgram(
            workload=workload.id,
            parameters=workload.parameters,
            files=sum(state.startswith(("file ", "code ")) for state in program.paths.values()),
        )

    def complete(
        self,
        workload: PlannedWorkload,
        machine: MachineDescription,
        programs: Sequence[Program],
        root: Path,
    ) -> Program:
        """Return the record of launches in `root` with what only the parent knows, and keep it."""
        program = join_programs(programs)
        inputs, obstacles = {}, program.obstacles
        try:
            inputs = proof.digest_inputs(FolderTree(root), workload.inputs)
        except IncomparableError as error:
            obstacles = (*obstacles, str(error))
        complete = msgspec.structs.replace(
            program,
            conditions=proof.digest_conditions(machine.environment, workload, self.plan, root),
            settings=proof.digest_settings(workload, self.plan, root),
            inputs=inputs,
            obstacles=obstacles,
        )
        self.cache.keep(complete)
        return complete

    def _explain_misfit(
        self,
        workload: PlannedWorkload,
        machine: MachineDescription,
        program: Program,
        base: Tree,
    ) -> str:
        """Say why a record does not describe the base as it is, here and now; "" if it does."""
        wanted = proof.digest_conditions(
            machine.environment, workload, self.plan, Path(self.plan.root)
        )
        if why := proof.find_other_condition(program, wanted, machine.variables):
            return why
        # An obstacle makes it prove nothing; it describes the base all the same.
        plain = msgspec.structs.replace(program, obstacles=())
        return proof.find_difference(plain, base)

    def _read_records(
        self, workload: PlannedWorkload, machine: MachineDescription
    ) -> Iterator[Program]:
        committed = layout.read_program(
            self.baselines, machine.environment.hard, self.plan.suite, workload.id
        )
        kept = self.cache.read_newest_first(workload.id) if self.believes_cache else ()
        return itertools.chain([committed] if committed else [], kept)

    def _find_other_settings(
        self, workload: PlannedWorkload, machine: MachineDescription, base: BaseSide
    ) -> str:
        """Say how the base launches a workload differently, or with which packages; "" if not."""
        known = [each for each in base.plan.workloads if each.id == workload.id]
        if not known:
            return "the suite of the base has no such workload"
        if base.plan.container != self.plan.container:
            return "the container in suite.toml is not that of the base"
        before, now = (
            proof.digest_conditions(machine.environment, each, plan, Path(plan.root))
            for each, plan in ((known[0], base.plan), (workload, self.plan))
        )
        if before != now:
            return "its settings in suite.toml are not those of the base"
        if not base.dependencies:
            return ""
        hard = machine.environment.hard
        file = layout.path(self.baselines, hard, self.plan.suite, workload.id)
        differs = f"{base.dependencies[0]} differs, and"
        if not file.is_file():
            return f"{differs} no baseline says which packages the base had"
        soft = layout.read(file).sessions[-1].soft
        if comparability.have_other_packages(soft, machine.environment.soft):
            return f"{differs} the installed packages are not those of the baseline"
        return ""


def find_variation(processes: Sequence[Process]) -> str:
    """Say that launches of one code compute different numbers: it may take different paths, too."""
    fingerprints = [process.fingerprint for process in processes]
    if reason := next((taken.varies for taken in fingerprints if taken.varies), ""):
        return f"its author says that its numerics vary: {reason}"
    different = {
        values for taken in fingerprints if (values := comparability.numeric_values(taken))
    }
    return "its numerics vary from launch to launch" if len(different) > 1 else ""


def touch(workload: PlannedWorkload, code: TouchedCode, detail: str) -> Touched:
    """Say why a workload is measured."""
    return Touched(workload=workload.id, code=code, detail=detail[:MAX_ERROR_CHARS])
