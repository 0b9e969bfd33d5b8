"""What a container adds to a step, and to a launch, as ratios of launches in one sitting.

    python benchmarks/container.py --image REF [--runner docker|podman] [--rounds N] [WORKLOAD ...]

The image must have the Python, the torch and the other packages that this runs with: else their
difference is measured, too. In each round every workload of the suite smoke is launched four times,
here and in a container by turns (ABBA, then BAAB, and so on), so that a machine which drifts hits
both alike. Each launch is held against its neighbour: a ratio of step times, by the statistic of
the suite, and one of the seconds from start to end. The tables show geometric means with the
interval in which they lie at 95 % (Student's t over the pairs), and beside them A/A: launches here
against others here, which say what the machine does by itself.

The claim: a step takes as long in a container as here, within 1 ± 0.02, or within A/A where that is
wider. The exit code is 1 when it is refuted for all workloads together: the interval lies wholly
outside. Starting a container takes what it takes; no claim is made.
"""

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ci_perf import session, suite
from ci_perf.judging import distributions, launch_numbers
from ci_perf.launch import Launcher, containers, local
from ci_perf.launch.containers import ContainerSide, Settings, engine, images
from ci_perf.model import metrics
from ci_perf.model.container import Container, EngineName
from ci_perf.model.suite import PlannedWorkload
from ci_perf.model.task import MachineDescription, Task, TaskFailure

ROOT = Path(__file__).parents[1]
HERE, THERE = "here", "in a container"
# The four launches of a round; the next round begins with the other.
ORDER = (HERE, THERE, THERE, HERE)
CLAIM = 0.02
_TAIL = 0.025


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One launch: where, its step time, and the seconds from start to end."""

    where: str
    step_s: float
    whole_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A ratio, and the bounds between which it lies at 95 %."""

    ratio: float
    low: float
    high: float

    def __str__(self) -> str:
        """Show it in a table."""
        return f"{self.ratio:.3f} [{self.low:.3f}, {self.high:.3f}]"


Rounds = Sequence[Sequence[Launch]]


def order(index: int) -> Sequence[str]:
    """Return where the launches of a round are made: ABBA, BAAB, ABBA and so on."""
    return ORDER if index % 2 == 0 else tuple(HERE if one == THERE else THERE for one in ORDER)


def apart(rounds: Rounds, of: str) -> list[float]:
    """Return logarithms of the container over here, one for each pair of neighbours."""
    found = []
    for first, second, third, fourth in rounds:
        found += [
            _log_ratio({one.where: one for one in pair}, of)
            for pair in ((first, second), (third, fourth))
        ]
    return found


def alike(rounds: Rounds, of: str) -> list[float]:
    """Return logarithms of the second launch here over the first, one for each round."""
    found = []
    for launches in rounds:
        first, second = (getattr(one, of) for one in launches if one.where == HERE)
        found.append(math.log(second / first))
    return found


def interval(logs: Sequence[float]) -> Interval:
    """Return the geometric mean of ratios, with its interval by Student's t; at least two."""
    mean = statistics.mean(logs)
    half = distributions.student_quantile(_TAIL, len(logs) - 1) * statistics.stdev(logs)
    half /= math.sqrt(len(logs))
    return Interval(ratio=math.exp(mean), low=math.exp(mean - half), high=math.exp(mean + half))


def together(several: Iterable[Sequence[float]]) -> list[float]:
    """Return the mean over workloads of each pair: what is made at a time has a time in common."""
    return [statistics.mean(ones) for ones in zip(*several, strict=True)]


def verdict(found: Interval, control: Interval, claim: float = CLAIM) -> str:
    """Say whether a ratio is 1, as far as the machine lets one see."""
    allowed = max(claim, abs(control.low - 1), abs(control.high - 1))
    if found.low > 1 + allowed or found.high < 1 - allowed:
        return "refuted"
    if 1 - allowed <= found.low and found.high <= 1 + allowed:
        return "holds" if allowed == claim else "within A/A"
    return "too noisy to show"


def main(arguments: argparse.Namespace) -> int:
    """Measure, and print the tables."""
    planned = suite.plan(
        ROOT / "workloads", "smoke", selection=tuple(arguments.workloads), root=ROOT
    ).workloads
    found: dict[str, list[list[Launch]]] = {one.id: [] for one in planned}
    with (
        local.launcher(ROOT) as here,
        containers.launcher(
            _sides(arguments), _settings(arguments.runner), run=session.new_identity(), say=_say
        ) as there,
        tempfile.TemporaryDirectory() as data_dir,
    ):
        launchers: Mapping[str, Launcher] = {HERE: here, THERE: there}
        _check_alike(launchers)
        for index in range(arguments.rounds):
            for one in planned:
                launches = [
                    _launch(launchers[where], where, _task(one, index, data_dir))
                    for where in order(index)
                ]
                found[one.id].append(launches)
            _say(f"round {index + 1} of {arguments.rounds}")
            if arguments.json is not None:
                _keep(found, arguments.json)
    return _show(found, arguments)


def _sides(arguments: argparse.Namespace) -> list[ContainerSide]:
    with_engine = engine.find(arguments.runner)
    image = images.resolve(with_engine, arguments.image, allow_unpinned=False, say=_say)
    return [ContainerSide(root=ROOT, image=image)]


def _settings(runner: EngineName) -> Settings:
    return Settings(engine=engine.find(runner), limits=Container(), gpu_access="gpus")


def _check_alike(launchers: Mapping[str, Launcher]) -> None:
    """Refuse another Python or torch: it would be measured as if it were the container's."""
    here, there = (_described(launchers[where]).environment.soft for where in (HERE, THERE))
    for fact in ("python", "torch", "transformers"):
        expected, found = getattr(here, fact), getattr(there, fact)
        if expected != found:
            raise SystemExit(f"--image: expected {fact} {expected}, as here, found {found}")


def _described(launcher: Launcher) -> MachineDescription:
    found = launcher.describe("cpu", 1, 1)
    if isinstance(found, TaskFailure):
        raise SystemExit(f"{found.reason}\n{found.output}")
    return found


def _task(workload: PlannedWorkload, index: int, data_dir: str) -> Task:
    return Task(workload=workload, index=index, device="cpu", root=str(ROOT), data_dir=data_dir)


def _launch(launcher: Launcher, where: str, task: Task) -> Launch:
    start = time.perf_counter()
    outcome = launcher.launch(task)
    whole_s = time.perf_counter() - start
    if isinstance(outcome, TaskFailure):
        raise SystemExit(f"{task.workload.id} {where}: {outcome.reason}\n{outcome.output}")
    step_s = launch_numbers.of_process(outcome.process)[metrics.STEP_TIME.name]
    return Launch(where=where, step_s=step_s, whole_s=whole_s)


def _show(found: Mapping[str, Rounds], arguments: argparse.Namespace) -> int:
    launches = 2 * arguments.rounds
    print(
        f"{launches} launches here and {launches} in {arguments.runner}, on {os.cpu_count()} CPUs"
    )
    print("\nStep time\n\n| workload | in a container / here | here again / here (A/A) | |")
    print("|:--|--:|--:|:--|")
    for name, rounds in found.items():
        _show_step(name, apart(rounds, "step_s"), alike(rounds, "step_s"))
    every = list(found.values())
    answer = _show_step(
        "all",
        together(apart(rounds, "step_s") for rounds in every),
        together(alike(rounds, "step_s") for rounds in every),
    )
    print("\nA launch, from start to end\n\n| workload | in a container / here | seconds more |")
    print("|:--|--:|--:|")
    for name, rounds in found.items():
        ratio = interval(apart(rounds, "whole_s"))
        print(f"| {name} | {ratio} | {_seconds_more(rounds):.2f} |")
    ratio = interval(together(apart(rounds, "whole_s") for rounds in every))
    print(f"| all | {ratio} | {statistics.mean(map(_seconds_more, every)):.2f} |")
    return int(answer == "refuted")


def _show_step(name: str, logs: Sequence[float], control: Sequence[float]) -> str:
    ratio, again = interval(logs), interval(control)
    answer = verdict(ratio, again)
    print(f"| {name} | {ratio} | {again} | {answer} |")
    return answer


def _seconds_more(rounds: Rounds) -> float:
    whole = {
        where: statistics.median(
            one.whole_s for launches in rounds for one in launches if one.where == where
        )
        for where in (HERE, THERE)
    }
    return whole[THERE] - whole[HERE]


def _log_ratio(pair: Mapping[str, Launch], of: str) -> float:
    there, here = getattr(pair[THERE], of), getattr(pair[HERE], of)
    return math.log(there / here)


def _keep(found: Mapping[str, Rounds], path: Path) -> None:
    everything = {
        name: [[asdict(one) for one in launches] for launches in rounds]
        for name, rounds in found.items()
    }
    path.write_text(json.dumps(everything), encoding="utf-8")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _at_least_two(text: str) -> int:
    if (count := int(text)) < 2:  # an interval needs as many
        raise argparse.ArgumentTypeError(f"expected at least 2, found {text}")
    return count


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("workloads", nargs="*", help="ids of the suite smoke; all without")
    parser.add_argument("--image", required=True, help="with the packages that this runs with")
    parser.add_argument("--runner", choices=("docker", "podman"), default="docker")
    parser.add_argument("--rounds", type=_at_least_two, default=5)
    parser.add_argument("--json", type=Path, help="keep every launch here")
    sys.exit(main(parser.parse_args()))
