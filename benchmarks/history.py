"""How long the history of a branch takes to be read from git, and how large its page is.

    python -m benchmarks.history                                   # 500 changed files
    python -m benchmarks.history --commits 2500                    # 5,000 changed files
    python -m benchmarks.history --commits 1000 --files 15         # 500 sessions of 15 workloads

Makes a repository whose commits each change some baselines of one machine, two machines in turn.
Prints changed files, bytes of all their versions, seconds of each step, the peak memory of this
process, and bytes of the page. The sessions are simulated from this repository's own baselines:
every second workload becomes slower and faster again with a reason, and slower without one.
"""

import argparse
import datetime as dt
import math
import random
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ci_perf.baselines import layout
from ci_perf.gate import history
from ci_perf.gate.history import HistoryOptions
from ci_perf.model import codec, metrics
from ci_perf.model.baseline import MAX_SESSIONS, Baseline, RecordedSession
from ci_perf.model.environment import CpuMachine
from ci_perf.model.metrics import Kind
from ci_perf.model.summary import Numbers

ROOT = Path(__file__).parents[1]
_APART = dt.timedelta(hours=6)
_LAUNCHES = 5
_AUTHORS = ("maintainer", "author", "bot")
_NOISY = frozenset({Kind.TIME, Kind.TAIL, Kind.ONE_OFF, Kind.ENERGY})
# At this share of the branch, every second workload takes so many times as long, for this reason.
_STEPS = ((0.30, 1.09, "Exact gelu: slower, and meant"), (0.55, 0.90, "Fused attention"))
_NOT_ACCEPTED = (0.80, 1.12)
# Logarithms: how sessions and launches of the same code differ.
_BETWEEN_SESSIONS, _BETWEEN_LAUNCHES = 0.012, 0.008


@dataclass
class Workload:
    """One file of one machine, as it grows."""

    seed: Baseline
    moves: bool
    slow: float = 1.0
    epoch: int = 0
    sessions: list[RecordedSession] = field(default_factory=list)

    def add(self, when: dt.datetime, share: float, step: float, rng: random.Random) -> str:
        """Measure once more; return the reason why it was accepted."""
        reason = "A session of the default branch"
        for place, ratio, why in (*_STEPS, (*_NOT_ACCEPTED, "")):
            if self.moves and place <= share < place + step:
                self.slow *= ratio
                self.epoch += bool(why)
                reason = why or reason
        between = rng.gauss(0, _BETWEEN_SESSIONS)
        newest = self.seed.sessions[-1]
        session = msgspec.structs.replace(
            newest,
            recorded_at=when.isoformat(),
            run=f"r{int(when.timestamp())}",
            reason=reason,
            epochs={"step_time_s": self.epoch} if self.epoch else {},
            source=msgspec.structs.replace(newest.source, commit=f"{rng.getrandbits(160):040x}"),
            processes=tuple(self._launch(between, rng) for _ in range(_LAUNCHES)),
        )
        self.sessions = [*self.sessions, session][-MAX_SESSIONS:]
        return reason

    def _launch(self, between: float, rng: random.Random) -> Numbers:
        launch = self.seed.sessions[-1].processes[0]
        noise = self.slow * math.exp(between + rng.gauss(0, _BETWEEN_LAUNCHES))
        return layout.rounded(
            {
                name: number * (noise if metrics.BY_NAME[name].kind in _NOISY else 1)
                for name, number in launch.items()
            }
        )

    def text(self) -> bytes:
        """Return the file."""
        whole = msgspec.structs.replace(self.seed, sessions=tuple(self.sessions))
        return layout.render(layout.with_headline(whole)).encode()


def make(root: Path, *, commits: int, files: int, seed: int = 7) -> None:
    """Make the repository. Each commit changes `files` baselines of one machine."""
    subprocess.run(["git", "init", "-q", "-b", "main", root], check=True)
    stream = b"".join(_commits(commits, files, random.Random(seed)))  # noqa: S311  not secret
    subprocess.run(
        ["git", "-C", root, "fast-import", "--quiet"], input=stream, check=True, capture_output=True
    )


def _commits(commits: int, files: int, rng: random.Random) -> Iterator[bytes]:
    seeds = layout.read_everything(ROOT / "baselines")[:files]
    machines = [
        [_workload(seed, cores, index) for index, seed in enumerate(seeds)] for cores in (2, 8)
    ]
    start = dt.datetime.now(dt.UTC) - commits * _APART
    for number in range(commits):
        when = start + number * _APART
        share = number / commits
        machine = machines[number % 2]
        reasons = [each.add(when, share, 2 / commits, rng) for each in machine]
        author = _AUTHORS[number % len(_AUTHORS)]
        title = f"Accept: {reasons[0]}".encode()
        committer = f"{author} <a@example.org> {int(when.timestamp())} +0000"
        yield f"commit refs/heads/main\ncommitter {committer}\n".encode()
        yield b"data %d\n%s\n" % (len(title), title)
        for workload in machine:
            text = workload.text()
            path = layout.path(
                Path("baselines"),
                workload.seed.machine,
                workload.seed.suite,
                workload.seed.workload,
            )
            yield b"M 100644 inline %s\ndata %d\n%s\n" % (str(path).encode(), len(text), text)


def _workload(seed: Baseline, cores: int, index: int) -> Workload:
    machine = CpuMachine(cpu_model="Some CPU", logical_cores=cores)
    return Workload(msgspec.structs.replace(seed, machine=machine), moves=index % 2 == 0)


def _print_sizes(root: Path) -> None:
    log: list[str | Path] = ["git", "-C", root, "log", "--raw", "--no-abbrev", "--format=", "main"]
    blobs = subprocess.run(log, check=True, capture_output=True, text=True).stdout.splitlines()
    names = "\n".join(line.split()[3] for line in blobs)
    check: list[str | Path] = ["git", "-C", root, "cat-file", "--batch-check=%(objectsize)"]
    sizes = subprocess.run(check, input=names, check=True, capture_output=True, text=True).stdout
    print(f"{len(blobs):,} changed files, {sum(map(int, sizes.split())) / 1e6:.1f} MB")


def main() -> None:
    """Make a repository, read it, and print what that took."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--commits", type=int, default=125)
    parser.add_argument("--files", type=int, default=4)
    parser.add_argument("--keep", type=Path, help="make the repository here, and leave it")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = asked.keep or Path(scratch, "repository")
        if not root.exists():
            make(root, commits=asked.commits, files=asked.files)
        _print_sizes(root)
        _measure(root)


def _measure(root: Path) -> None:
    options = HistoryOptions(root=root, baselines=root / "baselines", workloads=ROOT / "workloads")
    started = time.perf_counter()
    read = history.read(options, notify=print)
    _told("read and described", started)
    sessions = sum(len(each.sessions) for each in read.workloads)
    lines = sum(len(each.metrics) for each in read.workloads)
    print(f"{len(read.workloads)} files, {sessions:,} sessions, {lines} metrics")
    started = time.perf_counter()
    text = codec.encode(read)
    _told(f"JSON of {len(text) / 1e6:.2f} MB", started)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:.0f} MiB")


def _told(what: str, started: float) -> None:
    print(f"{what}: {time.perf_counter() - started:.2f} s")


if __name__ == "__main__":
    main()
