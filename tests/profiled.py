"""Launches that profile a workload of one file, for real."""

import msgspec

from ci_perf.launch.local import LocalLauncher
from ci_perf.model.suite import PlannedWorkload
from ci_perf.model.task import Task
from tests.launches import QUICK


def launcher(root):
    """Launch a workload that consists of this source in the folder `root`, to profile it."""

    def launch(
        source, *, profile=True, protocol=QUICK, trace_to="", snapshot_to="", timeout_s=300, **more
    ):
        root.mkdir(exist_ok=True)
        (root / "it.py").write_text(source)
        launcher = LocalLauncher(root)
        start = launcher.profile if profile else launcher.launch
        return start(
            Task(
                workload=PlannedWorkload(
                    id="it",
                    file=str(root / "it.py"),
                    description="",
                    parameters={},
                    protocol=msgspec.structs.replace(protocol, timeout_s=timeout_s, monitor_hz=0),
                    **more,
                ),
                index=0,
                device="cpu",
                root=str(root),
                data_dir=str(root),
                trace_to=str(trace_to),
                snapshot_to=str(snapshot_to),
            )
        )

    return launch
