"""Call a function that may never return, with a limit of CPU time."""

import multiprocessing
import resource
from collections.abc import Callable
from typing import TypeVar, cast

T = TypeVar("T")


def call_within(cpu_s: int, function: Callable[[], T]) -> T:
    """Return what a function returns, called in a fork: a regular expression hears no signal.

    Raises ValueError as the function does, or because it takes longer.
    """
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)

    def answer() -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        most = cpu_s if hard == resource.RLIM_INFINITY else min(cpu_s, hard)
        resource.setrlimit(resource.RLIMIT_CPU, (most, most))  # SIGKILL: no core is left
        try:
            sender.send((function(), ""))
        except ValueError as error:
            sender.send((None, str(error)))

    child = fork.Process(target=answer)
    child.start()
    sender.close()
    try:
        result, failure = receiver.recv()
    except EOFError:
        raise ValueError(
            f"expected its output to be matched within {cpu_s} s of CPU time, found no end; "
            "simplify the regular expression"
        ) from None
    finally:
        child.join()
        receiver.close()
    if failure:
        raise ValueError(failure)
    return cast("T", result)
