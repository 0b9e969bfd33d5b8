"""A registry on this machine alone: it gives an image the digest that a reference is pinned by."""

import contextlib
import re
import shutil
import time
from dataclasses import dataclass

from ci_perf.features.containers.launch.engine import Engine
from tests.features.containers.helpers import engines, keeper

# Debian's name, and that of the project's own releases.
_PROGRAMS = ("docker-registry", "registry")
# The first free port; engines take 127.0.0.0/8 for safe without TLS.
_CONFIGURATION = """\
version: 0.1
log: {{level: info, formatter: text}}
storage:
  filesystem: {{rootdirectory: {folder}/images}}
  delete: {{enabled: true}}
http: {{addr: "127.0.0.1:0"}}
"""
_START_S = 60.0


@dataclass(frozen=True, slots=True)
class Registry:
    """A registry that answers at ``address``; ``docker`` pushes to it."""

    address: str
    docker: Engine

    def push(self, image, name="ci-perf-test"):
        """Push an image under a name with or without tag; return NAME@sha256:DIGEST."""
        reference = f"{self.address}/{name}"
        self.docker.must("tag", image, reference)
        said = self.docker.must("push", reference, timeout_s=600)
        digest = re.search(r"digest: (sha256:[0-9a-f]{64})", said)
        assert digest, said
        return f"{self.address}/{name.partition(':')[0]}@{digest[1]}"


@contextlib.contextmanager
def running(docker):
    """Give a registry; raise NoEngineError where there is no program for it."""
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        raise engines.NoEngineError("docker-registry: not there (`.ci/packages` installs it)")
    folder, held = keeper.new_folder()
    (folder / "registry.yml").write_text(_CONFIGURATION.format(folder=folder))
    command = [*engines.WITH_KEEPER, program, "serve", f"{folder}/registry.yml"]
    with engines.kept(folder, held, command) as process:
        yield Registry(_address(folder, process), docker)


def _address(folder, process):
    deadline = time.monotonic() + _START_S
    while True:
        log = folder / "log"
        said = log.read_text() if log.exists() else ""
        if found := re.search(r"listening on (127\.0\.0\.1:\d+)", said):
            return found[1]
        if process.poll() is not None or time.monotonic() > deadline:
            raise engines.NoEngineError(f"the registry does not listen: {said}")
        time.sleep(0.02)
