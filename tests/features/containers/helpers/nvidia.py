"""GPUs for containers on a machine that has none: docker's hook, and podman's specification."""

import json
import shutil
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path

from tests import drivers
from tests.features.containers.helpers import keeper, roots

HOOK = "nvidia-container-runtime-hook"
_SOURCE = Path(__file__).parent / HOOK
# As the hook says.
_STATE = "/etc/nvidia-stand-in"


@dataclass(frozen=True, slots=True)
class Gpus:
    """What containers may ask for, and the folder in which the hook notes what they asked."""

    uuids: tuple[str, ...]
    folder: Path

    def asked(self):
        """Return what was asked of the hook, in order."""
        file = self.folder / "asked"
        return file.read_text().splitlines() if file.exists() else []


def put_hook(folder):
    """Put the hook where a daemon looks for it when it starts."""
    shutil.copy(_SOURCE, folder / HOOK)
    return folder


def make(folder):
    """Make four GPUs that no other session has, for the hook in this folder."""
    drivers.build(folder, f'-DSTATE_FILE="{_STATE}"')
    uuids = tuple(f"GPU-{uuid.uuid4()}" for _ in range(4))
    machine = {"uuids": uuids, "libraries": str(roots.library_folder())}
    (folder / "gpus.json").write_text(json.dumps(machine))
    return Gpus(uuids, folder)


def specify(gpus, name):
    """Tell podman of GPUs. It looks in one folder of the machine; the keeper removes the file.

    Real specifications name libraries and device nodes, and hooks. This one has hooks alone.
    """
    specification = {
        "cdiVersion": "0.3.0",
        "kind": "nvidia.com/gpu",
        "devices": [{"name": one, "containerEdits": _edits(gpus, one)} for one in gpus.uuids],
    }
    keeper.CDI.mkdir(exist_ok=True)
    (keeper.CDI / f"{name}.json").write_text(json.dumps(specification))


def _edits(gpus, one):
    arguments = [sys.executable, "-P", str(gpus.folder / HOOK), "cdi", one]
    return {"hooks": [{"hookName": "prestart", "path": sys.executable, "args": arguments}]}
