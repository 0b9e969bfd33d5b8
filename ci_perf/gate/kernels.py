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
from ci_perf.model.run import Pair, Paired, Run
from ci_perf.system import files

# A name of C++ templates is longer than a name of a file may be.
_NAME_CHARS = 100


def prepare_empty(folder: Path | None) -> Path | None:
    """Make the folder, and return it whole. Raises UsageError and CannotWriteError."""
    if prepared := prepare_folder(folder):
        if any(prepared.iterdir()):
            raise UsageError(f"--kernels: expected an empty or a new folder, found {prepared}")
        files.check_target(prepared / "base")
    return prepared


def write_kernels(folder: Path, paired: Iterable[Paired]) -> Iterator[str]:
    """Write the kernels of one pair of each workload; yield what is said of them."""
    counts: Counter[str] = Counter()
    base, head = folder / "base", folder / "head"
    try:
        files.make_folder(base)
        files.make_folder(head)
        for each in paired:
            codes = _find_codes(each.pairs)
            for absent in filter(None, (code.absent for code in codes)):
                yield f"note: {each.workload}: no kernels: {absent}"
            for side, name, source in _name_files(pair_kernels(*(c.kernels for c in codes))):
                files.make_folder(folder / side / each.workload)
                files.write_text(folder / side / each.workload / name, source)
                counts[side] += 1
    except CannotWriteError as error:
        yield f"note: --kernels: {error}"
        return
    if not counts:
        yield f"kernels: none in {folder}: no pair of launches has code of torch.compile"
        return
    command = shlex.join(["diff", "-r", str(base), str(head)])
    yield f"kernels: base {counts['base']:,}, head {counts['head']:,}; compare them: {command}"


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
