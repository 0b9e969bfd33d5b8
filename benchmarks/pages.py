"""The numbers of one run, over many commits, for the pages of other tools and for ours.

    python -m benchmarks.pages run.json FOLDER [--commits 100]

Simulates sessions of a real run: each commit's step times are those of the run, times what sessions
and launches of the same code differ by; the newest third is 9 % slower. Writes into FOLDER:

    asv/        a repository, asv.conf.json and results/   `asv publish` there
    gab/        data.js of github-action-benchmark         put its index.html beside it
    pyperf/     the last two commits, as suites            `pyperf hist base.json head.json`
    ci_perf/    page.html: the head against the 20 sessions before it

and prints bytes and seconds of what it wrote. docs/page.md has the table.
"""

import argparse
import json
import math
import random
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ci_perf import exporters
from ci_perf.judging import compare, launch_numbers, summarise
from ci_perf.model.baseline import MAX_SESSIONS
from ci_perf.model.process import Process
from ci_perf.model.run import Run, Source
from ci_perf.report import page
from ci_perf.system import files

_LAUNCHES = 5
_BETWEEN_SESSIONS, _BETWEEN_LAUNCHES = 0.012, 0.008  # logarithms
_SLOWER, _SINCE = 1.09, 2 / 3
_DAY_S = 86_400
_START_S = 1_700_000_000


def main() -> None:
    """Write the data of all tools, and our page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--commits", type=int, default=100)
    asked = parser.parse_args()
    repository = asked.folder / "asv" / "repository"
    commits = _repository(repository, asked.commits)
    runs = _runs(files.read(asked.run, Run), commits, random.Random(7))  # noqa: S311  not secret
    for write in (_asv, _github_action_benchmark, _pyperf, _ci_perf):
        name = write.__name__.strip("_")
        folder = asked.folder / {"github_action_benchmark": "gab"}.get(name, name)
        folder.mkdir(parents=True, exist_ok=True)
        started = time.perf_counter()
        write(runs, folder)
        took = time.perf_counter() - started
        size = sum(
            path.stat().st_size
            for path in folder.rglob("*")
            if path.is_file() and repository not in path.parents
        )
        print(f"{name}: {size:,} bytes in {took:.2f} s")


def _repository(root: Path, commits: int) -> list[str]:
    """Make empty commits, a day apart; return them, oldest first."""
    subprocess.run(["git", "init", "-q", "-b", "main", root], check=True)
    stream = "".join(
        f"commit refs/heads/main\ncommitter A <a@example.org> {_START_S + index * _DAY_S} +0000\n"
        f"data 1\n{'.'}\n"
        for index in range(commits)
    )
    git = ["git", "-C", str(root)]
    subprocess.run([*git, "fast-import", "--quiet"], input=stream, text=True, check=True)
    log = [*git, "log", "--reverse", "--format=%H", "main"]
    return subprocess.run(log, capture_output=True, text=True, check=True).stdout.split()


def _runs(seed: Run, commits: Sequence[str], rng: random.Random) -> list[Run]:
    since, newest = _SINCE * len(commits), len(commits) - 1
    return [
        _session(seed, commit, index, _SLOWER ** ((index >= since) + (index == newest)), rng)
        for index, commit in enumerate(commits)
    ]


def _session(seed: Run, commit: str, index: int, slower: float, rng: random.Random) -> Run:
    measured = []
    for workload in seed.measured:
        session = slower * math.exp(rng.gauss(0, _BETWEEN_SESSIONS))
        first = workload.processes[0]
        launches = tuple(
            _launch(first, number, session * math.exp(rng.gauss(0, _BETWEEN_LAUNCHES)))
            for number in range(_LAUNCHES)
        )
        measured.append(msgspec.structs.replace(workload, processes=launches))
    return msgspec.structs.replace(
        seed,
        id=f"{index:012x}",
        started_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(_START_S + index * _DAY_S)),
        source=Source(commit=commit, branch="main", dirty=False),
        measured=tuple(measured),
        interleaved=None,
        paired=(),
        profiled=(),
    )


def _launch(process: Process, number: int, factor: float) -> Process:
    timed = process.timed
    blocks = tuple(block_s * factor for block_s in timed.block_s)
    return msgspec.structs.replace(
        process, index=number, timed=msgspec.structs.replace(timed, block_s=blocks)
    )


def _asv(runs: Sequence[Run], folder: Path) -> None:
    settings = {"version": 1, "project": "w", "project_url": "", "repo": "repository"}
    settings |= {"branches": ["main"], "environment_type": "existing", "show_commit_url": ""}
    (folder / "asv.conf.json").write_text(json.dumps(settings))
    for run in runs:
        for name, content in exporters.export(run, "asv").files.items():
            path = folder / "results" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def _github_action_benchmark(runs: Sequence[Run], folder: Path) -> None:
    """Write what the action keeps on its branch: a point per commit and metric."""
    author = {"name": "A", "username": "a", "email": "a@example.org"}
    entries = [
        {
            "commit": {
                "id": run.source.commit,
                "message": "w",
                "timestamp": run.started_at,
                "url": f"https://example.org/{run.source.commit}",
                "author": author,
                "committer": author,
            },
            "date": 1000 * (_START_S + index * _DAY_S),
            "tool": "customSmallerIsBetter",
            "benches": json.loads(exporters.export(run, "github-action-benchmark").files[""]),
        }
        for index, run in enumerate(runs)
    ]
    data = {"lastUpdate": 0, "repoUrl": "https://example.org", "entries": {"ci_perf": entries}}
    (folder / "data.js").write_text(f"window.BENCHMARK_DATA = {json.dumps(data, indent=2)}")


def _pyperf(runs: Sequence[Run], folder: Path) -> None:
    """Write step times as suites of pyperf: a run with one value for each launch."""
    for name, run in (("base", runs[-2]), ("head", runs[-1])):
        benchmarks = [
            {
                "metadata": {"name": workload.workload, "unit": "second", "loops": 1},
                "runs": [
                    {"values": [numbers["step_time_s"]]}
                    for numbers in launch_numbers.of_workload(workload, run)
                ],
            }
            for workload in run.measured
        ]
        document = {"version": "1.0", "benchmarks": benchmarks}
        (folder / f"{name}.json").write_text(json.dumps(document))


def _ci_perf(runs: Sequence[Run], folder: Path) -> None:
    *before, head = runs
    sides = [summarise.run(run, label="baselines") for run in before[-MAX_SESSIONS:]]
    newest = sides[-1]
    subjects = tuple(
        msgspec.structs.replace(
            subject, sessions=tuple(s for side in sides for s in side.subjects[place].sessions)
        )
        for place, subject in enumerate(newest.subjects)
    )
    base = msgspec.structs.replace(newest, subjects=subjects)
    comparison = compare.compare(base, summarise.run(head, label="run.json"))
    (folder / "page.html").write_text(page.render(comparison, run=head, base=base))


if __name__ == "__main__":
    main()
