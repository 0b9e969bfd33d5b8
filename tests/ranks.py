"""A folder in which real ranks run, and what became of them."""

import contextlib
import os
import sys
import textwrap
from pathlib import Path

from ci_perf.launch import never
from ci_perf.model import task
from ci_perf.model.process import WorkerResult
from ci_perf.model.task import TaskFailure
from ci_perf.system import child, files
from tests.launches import a_task

ROOT = Path(__file__).parents[1]
WORKLOADS = ROOT / "workloads"
# Of a model: few steps, for each takes its time.
FEW_STEPS = {
    "timeout_s": 600,
    "warmup_min_steps": 3,
    "warmup_window": 2,
    "memory_steps": 1,
    "phase_steps": 2,
}

# What stands in for a worker where it is torchrun that is on trial: it needs no torch.
STAND_IN = """
import contextlib, os, signal, sys, time
from pathlib import Path
folder, rank = Path(sys.argv[1]), int(os.environ["RANK"])
(folder / "new").mkdir(exist_ok=True)
def leave(name, text):
    new = folder / "new" / name
    new.write_text(text)
    new.rename(folder / name)
leave(f"pid.{rank}", str(os.getpid()))
(folder / f"phase.{rank}").write_text("timed")
def tell(reason):
    leave(f"trouble.{rank}.json", '{"phase": "timed", "reason": "%s"}' % reason)
    sys.exit(1)
def wait_for(name):
    while not (folder / name).exists():
        time.sleep(0.01)
print("rank", rank, "was here", flush=True)
"""


class Launch:
    """A folder in which ranks run, and what became of them."""

    def __init__(self, folder):
        self.folder = folder / "launch"
        self.folder.mkdir()
        self.modules = folder

    def planned(self, file, *, world_size=2, parameters=None, device="cpu", start="torchrun"):
        """Write the task."""
        ranks = {"parameters": parameters or {}, "launch": start, "world_size": world_size}
        more = {"protocol": FEW_STEPS, "device": device, "data_dir": str(self.modules)}
        files.write(self.folder / task.TASK, a_task(file, root=ROOT, workload=ranks, **more))
        return self

    def stand_in(self, source):
        """Write the module that every rank runs, in place of our worker."""
        (self.modules / "stand_in.py").write_text(STAND_IN + textwrap.dedent(source))
        return self.planned("it.py")

    def command(self, *, worker="stand_in", port="None"):
        run = (
            "import itertools, os, sys\nfrom pathlib import Path\n"
            "from ci_perf.measuring import ranks\nfrom ci_perf.system import linux\n"
            f"sys.exit(ranks.main(Path(sys.argv[1]), worker={worker!r}, port={port}))"
        )
        return [sys.executable, "-P", "-c", run, str(self.folder)]

    @property
    def environment(self):
        paths = (str(self.modules), str(ROOT), str(WORKLOADS), os.environ.get("PYTHONPATH"))
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "OMP_NUM_THREADS": "1",
            "PYTHONUNBUFFERED": "1",
        }

    def run(self, command=None, *, timeout_s=120.0, slot=None):
        """Run to the end or the time limit, as a launcher does; `slot` may have a clock."""
        with child.end_orphans() if slot else contextlib.nullcontext():
            return child.run(
                command or self.command(),
                cwd=str(self.modules),
                environment=self.environment,
                cookie=child.Cookie(variable="CI_PERF_TEST", value=str(self.folder)),
                timeout_s=timeout_s,
                interrupted=never,
                slot=slot,
            )

    def real(self, prefix=(), *, agent="ci_perf.measuring.ranks", slot=None):
        """Run with our own worker, from the command line that a launcher uses."""
        parent = str(os.getpid())
        command = [sys.executable, "-P", "-m", agent, str(self.folder), parent]
        return self.run([*prefix, *command], slot=slot)

    @property
    def pids(self):
        return [int((self.folder / f"pid.{rank}").read_text()) for rank in range(2)]

    def has_started(self):
        """Whether both ranks have said who they are."""
        paths = [self.folder / f"pid.{rank}" for rank in range(2)]
        return all(path.exists() for path in paths)

    @property
    def trouble(self):
        return files.read(self.folder / task.FAILURE, TaskFailure)

    @property
    def result(self):
        return files.read(self.folder / task.RESULT, WorkerResult)
