"""Make a run the new baseline: judge it by the old one, and write the files that change.

Where nobody has ci-perf at hand, they are written as a patch for `git apply`.
"""

import contextlib
import difflib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ci_perf.api_types import Notify
from ci_perf.baselines import accept as baselines_accept
from ci_perf.baselines import layout
from ci_perf.baselines.accept import Acceptance, Action, Mode
from ci_perf.errors import UsageError
from ci_perf.gate import compare
from ci_perf.model.run import Run
from ci_perf.model.suite import is_selected
from ci_perf.report import units
from ci_perf.system import files, git, lock

_NO_END = "\\ No newline at end of file\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptOptions:
    """What is accepted, and where it is written; the fields are the options of the command line.

    ``root`` is the repository. ``select`` names workloads, all without any. With ``patch``,
    ``baselines`` is left alone: the changes become a patch.
    """

    root: Path
    baselines: Path = Path("baselines")
    workloads: Path = Path("workloads")
    select: tuple[str, ...] = ()
    reason: str = ""
    append: bool = False
    replace: bool = False
    force: bool = False
    until: str = ""
    patch: Path | None = None


def accept(
    run: Run, options: AcceptOptions, *, label: str, notify: Notify
) -> tuple[Acceptance, ...]:
    """Write the baselines that a run changes, and say what became of each workload.

    `label` begins every message about the run. Raises RefusedError, UsageError, InvalidFileError
    and CannotWriteError; then no file has changed.
    """
    mode = _mode(options)
    rules = compare.rules(
        options.workloads, run.suite, options.baselines, run.environment.hard, notify=notify
    )
    # From what is read to what is written, nobody else adds a session.
    with contextlib.nullcontext() if options.patch else lock.hold_folder(options.baselines):
        comparison = compare.against_baselines(run, options.baselines, label=label, rules=rules)
        accepted = baselines_accept.prepare(
            options.baselines,
            run,
            comparison,
            workloads=options.select,
            reason=options.reason,
            mode=mode,
            force=options.force,
            until=options.until,
        )
        if not options.select and rules.limits.workloads:
            known = {*rules.limits.workloads, *(acceptance.workload for acceptance in accepted)}
            accepted += baselines_accept.find_orphans(options.baselines, run.suite, known)
        if options.patch is None:
            baselines_accept.write(options.baselines, accepted)
        else:
            write_patch(options.patch, accepted, root=options.root)
    if any(acceptance.action is not Action.KEPT for acceptance in accepted):
        _caution(run, notify)
    if not accepted:
        _say_why_none(run, options, notify)
    return accepted


def _mode(options: AcceptOptions) -> Mode:
    if options.append and options.replace:
        raise UsageError("--append and --replace exclude each other: choose one")
    if options.replace and not options.reason.strip():
        # Small losses, each within its limit, would otherwise be forgotten one by one.
        raise UsageError('--replace forgets the history: say why with --reason "…"')
    return Mode.APPEND if options.append else Mode.REPLACE if options.replace else Mode.KEEP


def _say_why_none(run: Run, options: AcceptOptions, notify: Notify) -> None:
    same = [each for each in run.same if is_selected(each.workload, options.select)]
    if same:
        notify(
            f"note: {units.render_count(len(same), 'workload')} not launched, because base and "
            "head run the same program; an existing baseline stays valid. To record new numbers, "
            "measure with --all"
        )


def _caution(run: Run, notify: Notify) -> None:
    """Say what is kept in the baseline from now on and might be regretted."""
    if run.source.dirty:
        notify("note: the run was measured with uncommitted changes, and the baseline says so")
    if run.validity.reasons:
        codes = ", ".join(sorted({reason.code for reason in run.validity.reasons}))
        notify(
            f"note: the machine was degraded ({codes}); every later check will be compared "
            "with these numbers"
        )


def write_patch(file: Path, accepted: Iterable[Acceptance], *, root: Path) -> bool:
    """Write a patch of the repository that `root` lies in; return whether there is anything in it.

    Raises UsageError (baselines outside of it) and CannotWriteError.
    """
    top = git.find_top(root)  # outside of a repository, a patch is of the folder itself
    changed = [acceptance for acceptance in accepted if acceptance.action is not Action.KEPT]
    patch = "".join(
        _patch_of(path, text, top)
        for acceptance in changed
        for path, text in _list_written_files(acceptance)
    )
    if patch:
        files.write_bytes(file, patch.encode())
    return bool(patch)


def _list_written_files(acceptance: Acceptance) -> Iterator[tuple[Path, str]]:
    """Yield each file with its text; an empty one is removed."""
    if acceptance.action is Action.REMOVED:
        yield from ((acceptance.path, ""), (layout.program_file(acceptance.path), ""))
        return
    yield acceptance.path, layout.render(acceptance.baseline)
    if acceptance.program is not None:
        yield layout.program_file(acceptance.path), layout.readable(acceptance.program)


def _patch_of(path: Path, text: str, top: Path) -> str:
    """Return the patch that gives a file this text; empty where it has it already."""
    name = _inside(path, top)
    content = path.read_bytes() if path.exists() else b""
    before, after = _lines(content.decode(errors="replace")), _lines(text)
    if before == after:
        return ""
    head = f"diff --git a/{name} b/{name}\n"
    head += "" if before else "new file mode 100644\n"
    head += "" if after else "deleted file mode 100644\n"
    # A name with spaces ends at a tab.
    tab = "\t" if " " in name else ""
    old = f"a/{name}{tab}" if before else "/dev/null"
    new = f"b/{name}{tab}" if after else "/dev/null"
    body = difflib.unified_diff(before, after, old, new)
    return head + "".join(line if line.endswith("\n") else f"{line}\n{_NO_END}" for line in body)


def _lines(text: str) -> list[str]:
    """Split where git does: at line feeds, and nowhere else."""
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _inside(path: Path, top: Path) -> str:
    try:
        return Path(os.path.realpath(path)).relative_to(os.path.realpath(top)).as_posix()
    except ValueError:
        raise UsageError(
            f"--patch: expected baselines in the repository {top}, found {path} outside of it"
        ) from None
