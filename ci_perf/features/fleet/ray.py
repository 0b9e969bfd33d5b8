"""Ray: a task per unit, of which Ray retries what a node loses. The only file that knows Ray."""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ci_perf.errors import EngineError, UsageError
from ci_perf.features.fleet.unit import UnitFolder
from ci_perf.system import signals

_RETRIES = 2
_CONNECT_S = 10.0
_MOST_CHARS = 500
_NAMED = ("num_cpus", "num_gpus")


def run(units: Sequence[UnitFolder], *, options: Sequence[str], python: str) -> None:
    """Run each unit as a task, and wait until they have ended; Ray ends them where we end.

    Raises UsageError and EngineError.
    """
    wanted = read_resources(options)
    ray = _import_ray()
    # Ray prints what it thinks of its nodes, and stdout is for the report.
    with contextlib.redirect_stdout(sys.stderr):
        _connect(ray)
        try:
            # Workers need not have ci_perf: the function is sent as it is.
            ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
            # A worker process of its own, so that nothing of a unit is left for the next one.
            task = ray.remote(max_calls=1, max_retries=_RETRIES, **wanted)(call)
            units_of = {
                task.options(name=unit.path.name).remote(unit.command(python)): unit
                for unit in units
            }
            while units_of:
                (ended, *_), _ = ray.wait(list(units_of))
                unit = units_of.pop(ended)
                try:
                    unit.note_end(f"exit code {ray.get(ended)}")
                except ray.exceptions.RayError as error:
                    unit.note_end(_said(error))
        finally:
            ray.shutdown()


def call(command: Sequence[str]) -> int:
    """Run a unit in a worker process of Ray, with which it ends; return its exit code."""
    return subprocess.call([*command, str(os.getpid())], stdin=subprocess.DEVNULL)


def read_resources(options: Sequence[str]) -> dict[str, Any]:
    """Return what a unit takes of its node, of words such as num_gpus=8. Raises UsageError."""
    wanted: dict[str, float] = {}
    for option in options:
        name, _, number = option.partition("=")
        try:
            wanted[name] = float(number)
        except ValueError:
            raise UsageError(
                "--option: expected a resource of Ray and how much of it a unit takes, as "
                f"num_gpus=8 or h100=1, found {option!r}"
            ) from None
    others: Mapping[str, float] = {n: v for n, v in wanted.items() if n not in _NAMED}
    return {**{name: wanted[name] for name in _NAMED if name in wanted}, "resources": others}


def _import_ray() -> Any:  # noqa: ANN401  the package ray, where it is installed
    try:
        import ray
    except ImportError:
        raise UsageError(
            "--engine ray: expected the package ray, of the version of your cluster, found none; "
            "`pip install 'ci-perf[ray]'`"
        ) from None
    return ray


def _connect(ray: Any) -> None:  # noqa: ANN401  see above
    """Join the cluster of RAY_ADDRESS, or of this node. Raises EngineError."""
    address = os.environ.get("RAY_ADDRESS", "auto")
    host, sign, port = address.rpartition(":")
    try:
        if sign and port.isdecimal():  # where nobody listens, Ray would try for minutes
            socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S).close()
        # Ray goes on to handle SIGTERM in its own way; the end of this puts ours back.
        with signals.defer_signals() as deferral, deferral.suspended():
            ray.init(address=address, log_to_driver=False, logging_level="CRITICAL")
    except (ray.exceptions.RayError, OSError, RuntimeError, ValueError) as error:
        raise EngineError(
            f"Ray at {address!r}: expected a cluster of Ray {ray.__version__} with Python "
            f"{sys.version.split()[0]}, as here, found: {_said(error)}; `ray status` and the "
            "variable RAY_ADDRESS may help"
        ) from None


def _said(error: Exception) -> str:
    """Return what Ray says, in one line."""
    return " ".join([type(error).__name__, *str(error).split()])[:_MOST_CHARS]
