"""The engine of containers, docker or podman, by its command line: no shell, no library."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from ci_perf.errors import EngineError
from ci_perf.features.containers.launch import engine_errors
from ci_perf.model.container import EngineName
from ci_perf.system import processes
from ci_perf.system.processes import Completed

# A daemon that removes a large container on a busy disk may take long.
_ANSWER_S = 120.0

_VERSION = {"docker": "{{.Server.Version}}", "podman": "{{.Version}}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """An engine whose program was found. ``environment`` is what its commands get."""

    name: EngineName
    program: str
    environment: Mapping[str, str]

    def command(self, *arguments: str) -> list[str]:
        """Spell a command."""
        return [self.program, *arguments]

    def ask(self, *arguments: str, timeout_s: float = _ANSWER_S) -> Completed:
        """Run one command, whatever its exit code is. Raises EngineError if there is no answer."""
        try:
            return processes.capture(
                self.command(*arguments), timeout_s=timeout_s, environment=self.environment
            )
        except TimeoutError:
            raise EngineError(
                f"`{self.name} {arguments[0]}`: expected an answer within {timeout_s:g} s, found "
                "none; see whether the engine still works (`ci-perf doctor`)"
            ) from None
        except OSError as error:
            raise EngineError(
                f"{self.program}: expected a program that can be started, found {error.strerror}"
            ) from None

    def must(self, *arguments: str, timeout_s: float = _ANSWER_S) -> str:
        """Run one command and return its output. Raises EngineError if it fails."""
        answer = self.ask(*arguments, timeout_s=timeout_s)
        if answer.code != 0:
            raise EngineError(
                engine_errors.explain(self.name, arguments[0], answer.err), output=answer.err
            )
        return answer.out

    def version(self) -> str:
        """Return the version of the daemon. Raises EngineError if none answers."""
        return self.must("version", "--format", _VERSION[self.name])


def find(name: EngineName, ours: Mapping[str, str] | None = None) -> Engine:
    """Look for the program of an engine. Raises EngineError without one."""
    environment = dict(os.environ if ours is None else ours)
    program = shutil.which(name, path=environment.get("PATH"))
    if program is None:
        raise EngineError(engine_errors.absent(name))
    return Engine(name=name, program=program, environment={**environment, "LC_ALL": "C"})
