"""The folder of generated kernels that a person asks for: both sides, with the same file names."""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from ci_perf.errors import CannotWriteError, UsageError
from ci_perf.gate.traces import prepare_folder
from ci_perf.judging.generated import KernelPairs, pair_kernels
from ci_perf.model.process import GeneratedCode, Process
from ci_perf.model.run import Pair, Run
from ci_perf.system import files

# A name of C++ templates is longer than a name of a file may be.
_NAME_CHARS = 100
_NOT_COMPILED = "its launches show no code of torch.compile"


def prepare_empty(folder: Path | None) -> Path | None:
    """Make the folder, and return it whole. Raises UsageError and CannotWriteError."""
    if prepared := prepare_folder(folder):
        if any(prepared.iterdir()):
            raise UsageError(f"--kernels: expected an empty or a new folder, found {prepared}")
        files.check_target(prepared / "base")
    return prepared


def write_kernels(folder: Path, run: Run) -> Iterator[str]:
    """Write the kernels of one pair of each workload; yield what is said of them, and who has none.

    The run has their sources.
    """
    counts: Counter[str] = Counter()
    why = dict.fromkeys(_list_workloads(run), "no pair of launches")
    base, head = folder / "base", folder / "head"
    try:
        files.make_folder(base)
        files.make_folder(head)
        for each in run.paired:
            codes = _find_codes(each.pairs)
            absent = [code.absent for code in codes if code.absent]
            named = [*_name_files(pair_kernels(*(code.kernels for code in codes)))]
            if each.pairs:
                why[each.workload] = " and ".join(absent) or ("" if named else _NOT_COMPILED)
            for side, name, source in named:
                files.make_folder(folder / side / each.workload)
                files.write_text(folder / side / each.workload / name, source)
                counts[side] += 1
    except CannotWriteError as error:
        yield f"note: --kernels: {error}"
        return
    for reason in dict.fromkeys(filter(None, why.values())):
        names = ", ".join(name for name in why if why[name] == reason)
        yield f"note: no kernels of {names}: {reason}"
    if not counts:
        yield f"kernels: none in {folder}"
        return
    command = shlex.join(["diff", "-r", str(base), str(head)])
    yield f"kernels: base {counts['base']:,}, head {counts['head']:,}; compare them: {command}"


def _list_workloads(run: Run) -> list[str]:
    """Name all workloads of a run, launched or not."""
    names = [each.workload for each in run.measured]
    names += [each.workload for each in run.failed]
    names += [each.workload for each in run.same]
    return [*names, *(run.interleaved.unlaunched if run.interleaved else ())]


def _find_codes(pairs: Iterable[Pair]) -> list[GeneratedCode]:
    """Return the code of base and head, of the first pair with a source; else why it is absent."""
    absent = ""
    for pair in pairs:
        codes = [side.generated or GeneratedCode() for side in (pair.base, pair.head)]
        if any(each.source for code in codes for each in code.kernels):
            return codes
        absent = next((code.absent for code in codes if code.absent), absent)
    return [GeneratedCode(absent=absent), GeneratedCode()]


def _name_files(pairs: KernelPairs) -> Iterator[tuple[str, str, str]]:
    """Yield side, file name and source. Partners have one name, by what a file may be called."""
    taken: Counter[str] = Counter()
    for base, head in (*pairs.same, *pairs.other):
        named = head or base
        assert named is not None
        stem = re.sub(r"\W+", "_", named.name, flags=re.ASCII)[:_NAME_CHARS] or "kernel"
        taken[stem.lower()] += 1  # some file systems know no case
        number = taken[stem.lower()]
        suffix = "cpp" if "#include" in named.source else "py"
        name = f"{stem}.{number}.{suffix}" if number > 1 else f"{stem}.{suffix}"
        for side, kernel in (("base", base), ("head", head)):
            if kernel is not None:
                yield side, name, kernel.source


def drop_sources(run: Run) -> Run:
    """Return a run without the sources of kernels, which a run file does not hold."""

    def drop(process: Process) -> Process:
        code = process.generated or GeneratedCode()
        bare = tuple(msgspec.structs.replace(each, source="") for each in code.kernels)
        code = msgspec.structs.replace(code, kernels=bare)
        return msgspec.structs.replace(process, generated=process.generated and code)

    paired = []
    for each in run.paired:
        sides = [(pair, drop(pair.base), drop(pair.head)) for pair in each.pairs]
        pairs = (msgspec.structs.replace(pair, base=b, head=h) for pair, b, h in sides)
        paired.append(msgspec.structs.replace(each, pairs=tuple(pairs)))
    return msgspec.structs.replace(run, paired=tuple(paired))
