"""The child process: measure one workload once, write the result, exit.

Run as `python -P -m ci_perf.measure.worker FOLDER PARENT`; the files in FOLDER are named in
task.py, PARENT is the id of the process that waits for them. Results go to files because stdout
belongs to the workload.
"""

import contextlib
import faulthandler
import gc
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

from ci_perf import files
from ci_perf.measure import compiles, device, host, linux, task, timing, user_code
from ci_perf.model import run as runs
from ci_perf.model.run import Phase, PhaseTimes
from ci_perf.workload import Context, Workload


class Stopwatch:
    """Times the phases apart, and leaves a note of the current one for the parent."""

    def __init__(self, folder: Path) -> None:
        self._note = folder / task.PHASE
        self.current = Phase.LAUNCH
        self.seconds: dict[Phase, float] = {}

    @contextlib.contextmanager
    def phase(self, phase: Phase) -> Iterator[None]:
        """Enter a phase; a crash that kills the process leaves its name behind."""
        self.current = phase
        self._note.write_text(phase.value)
        start = time.perf_counter()
        yield
        self.seconds[phase] = time.perf_counter() - start


def main(folder: Path) -> int:
    """Measure the task in `folder`; whatever goes wrong becomes a Trouble for the parent."""
    faulthandler.enable()  # a segfault leaves its stack in the output
    faulthandler.register(signal.SIGUSR1, all_threads=True)  # so does a time-out
    stopwatch = Stopwatch(folder)
    try:
        result = measure(files.read(folder / task.TASK, task.Task), stopwatch)
        files.write(folder / task.RESULT, result)
    except BaseException as error:  # noqa: BLE001  also SystemExit: it is the author's
        trouble = task.Trouble(phase=stopwatch.current, reason=_reason(error))
        files.write(folder / task.TROUBLE, trouble)
        with contextlib.suppress(Exception):  # stderr is the author's, who may have closed it
            traceback.print_exception(error.with_traceback(_of_the_author(error.__traceback__)))
        return 1
    return 0


def measure(todo: task.Task, stopwatch: Stopwatch) -> runs.WorkerResult:
    """Go through the phases of one process, in the order of docs/measuring.md."""
    protocol = todo.workload.protocol
    with stopwatch.phase(Phase.IMPORT):
        loaded = user_code.load(Path(todo.workload.file), Path(todo.root))
        _seed(protocol.seed)
        _limit_threads(protocol.threads)
        here = device.open_device(todo.device)
    with stopwatch.phase(Phase.BUILD):
        workload = loaded.build(_context(todo))
        compiles.keep_all_records()
    losses: list[float] = []
    with stopwatch.phase(Phase.FIRST_STEP):
        first_step_s = here.time_block(workload.step, 1)
    with stopwatch.phase(Phase.WARMUP):
        _note_losses(losses, workload, here, protocol.fingerprint_steps)
        warmup, step_s = timing.warm_up(here, workload.step, protocol)
    with stopwatch.phase(Phase.TIMED), _no_collector():
        timed = timing.time_blocks(here, workload.step, protocol, step_s=step_s)
    with stopwatch.phase(Phase.MEMORY):
        memory = _memory(here, workload, protocol.memory_steps)
    with stopwatch.phase(Phase.TEARDOWN):
        _call(workload.teardown)
    seconds = stopwatch.seconds
    return runs.WorkerResult(
        items_per_step=float(workload.items_per_step),
        item_unit=workload.item_unit,
        process=runs.Process(
            index=todo.index,
            phases=PhaseTimes(
                import_s=seconds[Phase.IMPORT],
                build_s=seconds[Phase.BUILD],
                first_step_s=first_step_s,
                warmup_s=seconds[Phase.WARMUP],
                timed_s=seconds[Phase.TIMED],
                memory_s=seconds[Phase.MEMORY],
            ),
            warmup=warmup,
            timed=timed,
            memory=memory,
            compiles=compiles.counts(),
            losses=tuple(losses),
        ),
    )


def _context(todo: task.Task) -> Context:
    return Context(
        device=todo.device,
        parameters=todo.workload.parameters,
        seed=todo.workload.protocol.seed,
        data_dir=todo.data_dir,
    )


def _note_losses(losses: list[float], workload: Workload, here: device.Device, steps: int) -> None:
    """Keep the losses of the first steps, the first step's own among them."""
    if workload.loss is None or steps == 0:
        return
    losses.append(user_code.finite(workload.loss(), "loss"))
    for _ in range(steps - 1):
        here.time_block(workload.step, 1)
        losses.append(user_code.finite(workload.loss(), "loss"))


def _memory(here: device.Device, workload: Workload, steps: int) -> runs.Memory:
    here.reset_peaks()
    here.time_block(workload.step, steps)
    return runs.Memory(host_rss_peak_bytes=host.rss_peak_bytes(), device=here.memory())


@contextlib.contextmanager
def _no_collector() -> Iterator[None]:
    """Keep the garbage collector out of the timed region."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


def _seed(seed: int) -> None:
    """Seed every generator that is loaded; what a workload does not import needs no seed."""
    random.seed(seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed % 2**32)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(seed)


def _limit_threads(threads: int) -> None:
    """OMP_NUM_THREADS is set by the parent; torch's own pool wants to be told."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(threads)
        torch.backends.cudnn.benchmark = False


def _call(function: Callable[[], object] | None) -> None:
    if function is not None:
        function()


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())[:2000]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _of_the_author(trace: TracebackType | None) -> TracebackType | None:
    """Skip the frames that lead from here into the author's code; keep all when there is none."""
    inner = trace
    while inner is not None:
        file = inner.tb_frame.f_code.co_filename
        if not (file.startswith("<frozen importlib") or Path(file).parent == Path(__file__).parent):
            return inner
        inner = inner.tb_next
    return trace


def _flush() -> None:
    """Write what is still buffered; the workload may have closed or removed a stream."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


if __name__ == "__main__":
    linux.end_with_parent(int(sys.argv[2]))
    code = main(Path(sys.argv[1]))
    _flush()
    # Threads and exit handlers of the workload have had their say: the result is written.
    os._exit(code)
