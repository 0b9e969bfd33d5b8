"""A checkout with workloads, and our own launcher that measures it in containers of one engine."""

import json
import uuid

import msgspec
import pytest

from ci_perf.features.containers import launch
from ci_perf.features.containers.launch import ContainerSide, Settings, images
from ci_perf.model.container import Container
from ci_perf.model.suite import PlannedWorkload
from ci_perf.model.task import Task
from tests.launches import QUICK, failure_of

BOTH = pytest.mark.parametrize("which", ["docker", "podman"])
# Room for Python and what a worker imports; little enough for many at once.
SMALL = Container(shm_size="64m", tmp_size="64m", pids=512)
# A container begins in seconds on a busy machine, and its time limit counts from there.
PATIENT = msgspec.structs.replace(QUICK, timeout_s=120, monitor_hz=0)

# Before what a workload says in JSON; `said` reads it.
_REPORT = "REPORT "
REPORTING = f"""
import json
def report(facts):
    print({_REPORT!r} + json.dumps(facts), flush=True)
    raise SystemExit
"""


class Bench:
    """A checkout in a folder, and a launcher of containers for it; `sides` are more checkouts."""

    def __init__(self, folder, engine, image, *, limits=SMALL, access="gpus", sides=(), **more):
        self.root, self.kept = folder / "checkout", folder / "kept"
        folder.mkdir(exist_ok=True)
        for path in (self.root, self.kept):
            path.mkdir(mode=0o755)
        self.said: list[str] = []
        self.engine = engine
        self.run = uuid.uuid4().hex[:12]
        self.image = images.resolve(engine, image, allow_unpinned=False, say=self.said.append)
        self.launcher = launch.ContainerLauncher(
            [ContainerSide(root=root, image=self.image) for root in (self.root, *sides)],
            Settings(engine=engine, limits=limits, gpu_access=access, **more),
            run=self.run,
            folder=self.kept,
        )

    def task(
        self,
        source,
        *,
        name="it",
        root=None,
        suite=None,
        device="cpu",
        gpus=(),
        protocol=None,
        **more,
    ):
        """Make a task of a workload that consists of this source; `suite` is not in the root."""
        root = root or self.root
        file = (suite or root) / f"{name}.py"
        file.write_text(source)
        planned = PlannedWorkload(
            id=name,
            file=str(file),
            description="",
            parameters={},
            protocol=msgspec.structs.replace(PATIENT, **(protocol or {})),
            **more,
        )
        return Task(
            workload=planned, index=0, device=device, root=str(root), data_dir="/", gpus=gpus
        )

    def launch(self, source, **more):
        """Launch such a task."""
        return self.launcher.launch(self.task(source, **more))

    def facts(self, source, **more):
        """Launch a workload that looks around, and return what it gives to `report`."""
        failure = failure_of(self.launch(REPORTING + source, **more))
        _, marked, said = failure.output.rpartition(_REPORT)
        assert marked, f"{failure.reason}: {failure.output}"
        return json.loads(said.splitlines()[0])

    def left(self):
        """Return the names of the containers of this run that are there."""
        label = f"label=dev.ci_perf.run={self.run}"
        listed = self.engine.must("ps", "--all", "--filter", label, "--format", "{{.Names}}")
        return listed.split()


def of(request, which, folder, **more):
    """Return the bench of an engine, of which `request` has the fixtures."""
    image = {"docker": "python_image", "podman": "podman_python_image"}[which]
    engine = request.getfixturevalue(which)
    return Bench(folder, engine, request.getfixturevalue(image), **more)


def folder(path):
    """Make a folder that everybody may read, as checkouts are, and unlike pytest's own."""
    path.mkdir(mode=0o755)
    return path
