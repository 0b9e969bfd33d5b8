"""TensorBoard: an event file with a scalar per workload and metric, one point per run."""

import importlib
from io import BytesIO
from types import ModuleType

from ci_perf.baselines import layout
from ci_perf.errors import CiPerfError
from ci_perf.exporters import series
from ci_perf.exporters.series import Exported
from ci_perf.model.run import Run

# What every event file of this form begins with.
_FILE_VERSION = "brain.Event:2"


def export(run: Run) -> Exported:
    """Return one event file, below a folder per suite and machine. Raises CiPerfError.

    The step of a point is when the run began, in seconds since 1970: a folder of many runs is a
    line over time. TensorBoard keeps seven digits of a number.
    """
    events = _need("tensorboard.compat.proto.event_pb2")
    summaries = _need("tensorboard.plugins.scalar.summary_v2")
    buffer, started_s = BytesIO(), series.started_s(run)
    writer = _need("tensorboard.summary.writer.record_writer").RecordWriter(buffer)
    written = [events.Event(wall_time=started_s, file_version=_FILE_VERSION)] + [
        events.Event(
            wall_time=started_s,
            step=int(started_s),
            summary=summaries.scalar_pb(
                f"{of_metric.workload.workload}/{of_metric.metric.name}", of_metric.centre
            ),
        )
        for of_metric in series.of_run(run)
    ]
    for event in written:
        writer.write(event.SerializeToString())
    folder = f"{run.suite.replace(':', '-')}-{layout.machine_key(run.environment.hard)}"
    name = f"{folder}/events.out.tfevents.{int(started_s)}.{run.id}"
    return Exported(files={name: buffer.getvalue()}, left_out=series.without_numbers(run))


def _need(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise CiPerfError(
            f"--format tensorboard needs tensorboard, which is not installed ({error}): expected "
            "it beside ci-perf; next: `pip install tensorboard`"
        ) from None
