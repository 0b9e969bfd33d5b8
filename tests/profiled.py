"""Launches that profile a workload of one file, for real."""

from ci_perf.launch.local import LocalLauncher
from tests.launches import a_task


def launcher(root):
    """Launch a workload that consists of this source in the folder `root`, to profile it."""

    def launch(source, *, profile=True, trace_to="", timeout_s=300, **more):
        root.mkdir(exist_ok=True)
        (root / "it.py").write_text(source)
        launcher = LocalLauncher(root)
        start = launcher.profile if profile else launcher.launch
        return start(
            a_task(
                root / "it.py",
                protocol={"timeout_s": timeout_s, "monitor_hz": 0},
                workload=more,
                trace_to=str(trace_to),
            )
        )

    return launch
