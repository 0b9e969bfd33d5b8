"""How long launches of the standard suite take, and what that buys, against the protocol before.

    python benchmarks/standard_minutes.py [--start 10] [--import 8] [--cores 16] [--noise 0.004]

Computed, not measured: the real loops warm up and time steps of a simulated clock. Of the `--start`
seconds of a launch on a GPU, `--import` are spent importing, which several launches do at once, one
per core; they share these seconds, and a quarter more for the disk and the memory that they fight
for. Blocks differ by `--noise` (decision 18: quartiles of a GPU are
mostly within 0.6 %), launches by 0.5 %. The table says, per workload, how many
seconds each protocol needs for an interval of the same width: cost of a launch times variance of
its value. The protocol before decision 23 warmed up for 3 s and timed for 5 s and 30 blocks at
least. The exit code is 1 when three launches of each, with canaries, take more than 12 minutes.
"""

import argparse
import math
import random
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

from ci_perf import suite
from ci_perf.measuring import timing
from ci_perf.measuring.device import CpuDevice
from ci_perf.measuring.turn_client import Alone
from ci_perf.model.suite import PlannedWorkload

ROOT = Path(__file__).parents[1]
LAUNCHES, MINUTES = 3, 12
LAUNCH_SPREAD = 0.005
MOST_AT_ONCE = 16
# Seconds of a step. One step of the loader is an epoch; all others fill a block several times.
STEPS_S = {"dataloader_pipeline": 0.2, "gpt_decode": 0.25}
STEP_S = 0.02
OLD_WARMUP_S, OLD_TIMED_S, OLD_BLOCKS = 3.0, 5.0, 30
# Memory, counters and the end of the process, in steps and seconds.
AFTER_STEPS, OLD_AFTER_STEPS, AFTER_S = 7, 12, 0.3
# Seconds for each time that the canaries run: a start, and three programs.
CANARIES_S = 2.0
CONTENTION = 1.25


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What a launch costs before it warms up, and how noisy it is."""

    start_s: float
    import_s: float
    at_once: int
    noise: float

    @property
    def shared_start_s(self) -> float:
        """Seconds per launch where several import at once."""
        together = CONTENTION if self.at_once > 1 else 1.0
        return self.start_s - self.import_s + together * self.import_s / self.at_once


class Clock:
    """Steps advance it, as long as they take; their noise is that of a block."""

    def __init__(self, step_s: float, noise: float, seed: str) -> None:
        self.now_ns = 0
        self._step_s, self._noise = step_s, noise
        self._random = random.Random(seed)  # noqa: S311  no secret is made of it
        self._steps = max(1, math.ceil(0.05 / step_s))

    def step(self) -> None:
        """Take as long as the next step."""
        noise = self._noise * math.sqrt(self._steps) * self._random.gauss(0, 1)
        self.now_ns += round(1e9 * self._step_s * max(0.1, 1 + noise))

    def seconds(self) -> float:
        """Return the time."""
        return self.now_ns / 1e9


def measured(workload: PlannedWorkload, machine: Machine, step_s: float) -> tuple[float, float]:
    """Return seconds of warm-up and timing, and the variance that blocks leave."""
    spent, blocks = [], []
    for seed in range(5):
        clock = Clock(step_s, machine.noise, f"{workload.id} {seed}")
        device = CpuDevice(lambda clock=clock: clock.now_ns)  # type: ignore[misc]
        _, warm_s = timing.warm_up(device, clock.step, workload.protocol, clock=clock.seconds)
        timed = timing.time_blocks(
            device,
            clock.step,
            workload.protocol,
            step_s=warm_s,
            start_s=machine.shared_start_s + clock.seconds(),
            turn_taker=Alone(clock.seconds),
        )
        spent.append(clock.seconds())
        blocks.append(len(timed.block_s))
    return statistics.fmean(spent), _of_median(machine.noise, statistics.fmean(blocks))


def before(workload: PlannedWorkload, machine: Machine, step_s: float) -> tuple[float, float]:
    """Return the same of the protocol before, on a machine on which its least was enough."""
    block_s = max(step_s, 0.05)
    is_loader = workload.id.startswith("dataloader")
    fewest = 10 if is_loader else OLD_BLOCKS
    timed_s = max(OLD_TIMED_S, fewest * block_s)
    steps = 6 if is_loader else 20
    spent_s = max(OLD_WARMUP_S, steps * step_s) + timed_s
    return spent_s, _of_median(machine.noise, timed_s / block_s)


def _of_median(noise: float, blocks: float) -> float:
    return math.pi / 2 * noise**2 / blocks


def main(machine: Machine) -> int:
    """Print the table, and whether the suite keeps its time."""
    planned = suite.plan(ROOT / "workloads", "standard", root=ROOT).workloads
    launches = LAUNCH_SPREAD**2
    total, total_before = 0.0, 0.0
    print("| workload | s per launch before | now | for the same interval: now / before |")
    print("|:--|--:|--:|--:|")
    for workload in planned:
        step_s = STEPS_S.get(Path(workload.file).stem, STEP_S)
        old_s, old_variance = before(workload, machine, step_s)
        new_s, new_variance = measured(workload, machine, step_s)
        old = machine.start_s + old_s + OLD_AFTER_STEPS * step_s + AFTER_S
        new = machine.shared_start_s + new_s + AFTER_STEPS * step_s + AFTER_S
        ratio = new * (launches + new_variance) / (old * (launches + old_variance))
        print(f"| {workload.id} | {old:.1f} | {new:.1f} | {ratio:.2f} |")
        total += LAUNCHES * new
        total_before += LAUNCHES * old
    canaries_s = (LAUNCHES + 1) * (machine.start_s + CANARIES_S)
    minutes, minutes_before = ((sum_s + canaries_s) / 60 for sum_s in (total, total_before))
    print(
        f"\n{LAUNCHES} launches of {len(planned)} workloads with canaries: {minutes:.1f} minutes, "
        f"{minutes_before:.1f} before; {machine.at_once} import at once."
    )
    return int(minutes > MINUTES)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--start", type=float, default=10.0)
    parser.add_argument("--import", dest="import_s", type=float, default=8.0)
    parser.add_argument("--cores", type=int, default=16)
    parser.add_argument("--noise", type=float, default=0.004)
    given = parser.parse_args()
    sys.exit(
        main(
            Machine(
                start_s=given.start,
                import_s=given.import_s,
                at_once=min(given.cores, MOST_AT_ONCE),
                noise=given.noise,
            )
        )
    )
