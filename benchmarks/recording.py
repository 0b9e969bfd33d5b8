"""What it costs a timed step that its launch records which files are used.

    python -m benchmarks.recording

Times the same steps in processes that record and in processes that do not, in turns, and prints the
ratios. It fails (exit code 1) where recording makes the step of a model slower by more than 2 %.
The steps that read a file or a variable show what one such question costs.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import timeit
from pathlib import Path

from ci_perf.measuring.recording.recorder import Recording
from ci_perf.model.suite import PlannedWorkload, Protocol
from ci_perf.model.task import Task

MOST_RATIO = 1.02
ROUNDS = 5
STEPS = ("a model", "a file that is read", "a variable")


def time_steps(folder: Path, *, records: bool) -> None:
    """Print the seconds of each step in this process: the best of many blocks."""
    data = folder / "root/data.txt"
    data.parent.mkdir()
    data.write_text("1")
    protocol = Protocol()
    workload = PlannedWorkload(id="w", file="", description="", parameters={}, protocol=protocol)
    task = Task(workload=workload, index=0, device="cpu", root=str(data.parent), data_dir="")
    recording = Recording(task, folder) if records else None
    import torch

    torch.set_num_threads(1)
    model, batch = torch.nn.Linear(64, 64), torch.randn(32, 64)
    step_of = (
        lambda: model(batch).sum().backward(),
        data.read_bytes,
        lambda: os.environ.get("HOME"),
    )
    for step in step_of:
        print(min(timeit.repeat(step, number=200, repeat=100)))
    if recording is not None and "data.txt" not in recording.finish().paths:
        sys.exit("expected a record of data.txt, found none")


def main() -> int:
    """Print a table of ratios."""
    ratios = []
    for _ in range(ROUNDS):
        command = [sys.executable, "-m", "benchmarks.recording"]
        said = [subprocess.check_output([*command, each], text=True) for each in ("yes", "no")]
        yes, no = ([float(line) for line in each.split()] for each in said)
        ratios.append([first / second for first, second in zip(yes, no, strict=True)])
    medians = [statistics.median(each) for each in zip(*ratios, strict=True)]
    for name, ratio in zip(STEPS, medians, strict=True):
        print(f"| {name} | {ratio:.3f} |")
    return int(medians[0] > MOST_RATIO)


if __name__ == "__main__":
    if sys.argv[1:]:
        with tempfile.TemporaryDirectory() as scratch:
            time_steps(Path(scratch), records=sys.argv[1] == "yes")
        sys.exit()
    sys.exit(main())
