"""The child process: measure one workload once, write the result, exit.

Run as `python -P -m ci_perf.measuring.worker FOLDER PARENT`; the files in FOLDER are named in
task.py, PARENT is the id of the process that waits for them. Results go to files because stdout
belongs to the workload. torchrun starts one per rank, and tells it its rank.
"""

import contextlib
import faulthandler
import os
import signal
import sys
import traceback
from pathlib import Path
from types import TracebackType

from ci_perf.errors import InvalidFileError
from ci_perf.measuring import knobs, memory, user_code
from ci_perf.measuring.instruments import Stopwatch
from ci_perf.measuring.monitor import Marks
from ci_perf.measuring.phases import go_through
from ci_perf.measuring.recording import recorder
from ci_perf.model import task
from ci_perf.model.base import MAX_ERROR_CHARS
from ci_perf.system import files, linux


def main(folder: Path, *, is_forked: bool = False) -> int:
    """Measure the task in `folder`; whatever goes wrong becomes a TaskFailure for the parent."""
    faulthandler.enable()  # a segfault leaves its stack in the output
    faulthandler.register(signal.SIGUSR1, all_threads=True)  # so does a time-out
    stopwatch = Stopwatch(folder / _name_rank_file(task.PHASE))
    marks = Marks(folder)
    try:
        todo = files.read(folder / task.TASK, task.Task)
        if not todo.imports_ahead:  # a monitor would watch what others do meanwhile
            marks.hello()
        name = _name_rank_file(task.PROGRAM)
        with recorder.record(todo, folder, name, is_forked=is_forked) as recording:
            go_through(
                todo,
                stopwatch,
                marks,
                lambda result: files.write(folder / task.RESULT, result),
                alone=recording.watch_kernel if recording else lambda: None,
                is_forked=is_forked,
            )
        (folder / _name_rank_file(task.DONE)).touch()
    except BaseException as error:  # noqa: BLE001  also SystemExit: it is the author's
        failure = task.TaskFailure(
            phase=stopwatch.current,
            reason=_reason(error),
            exhausted=memory.find_exhausted(error, stopwatch.device),
        )
        files.write(folder / _name_rank_file(task.FAILURE), failure)
        with contextlib.suppress(Exception):  # stderr is the author's, who may have closed it
            traceback.print_exception(error.with_traceback(_skip_own_frames(error.__traceback__)))
        return 1
    return 0


def _name_rank_file(name: str) -> str:
    """Name the file of this process: its rank's own, where torchrun has given it a rank."""
    rank = os.environ.get("RANK", "")
    is_rank = "TORCHELASTIC_RUN_ID" in os.environ and rank.isdecimal()
    return task.name_rank_file(name, int(rank)) if is_rank else name


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())[:MAX_ERROR_CHARS]
    reason = f"{type(error).__name__}: {text}" if text else type(error).__name__
    remedy = user_code.remedy(text)
    return f"{reason}; next: {remedy}" if remedy else reason


def _skip_own_frames(trace: TracebackType | None) -> TracebackType | None:
    """Skip the frames that lead from here into the author's code; keep all when there is none."""
    inner = trace
    while inner is not None:
        file = inner.tb_frame.f_code.co_filename
        if not (file.startswith("<frozen importlib") or Path(file).parent == Path(__file__).parent):
            return inner
        inner = inner.tb_next
    return trace


if __name__ == "__mp_main__":  # multiprocessing has spawned it, with the arguments of its parent
    with contextlib.suppress(IndexError, InvalidFileError):  # the workload may have changed them
        spawner = files.read(Path(sys.argv[1]) / task.TASK, task.Task)
        user_code.find_in_spawned(Path(spawner.workload.file))
if __name__ == "__main__":
    linux.end_with_parent(int(sys.argv[2]))
    # Threads and exit handlers of the workload have had their say: the result is written.
    knobs.end_process(main(Path(sys.argv[1])))
