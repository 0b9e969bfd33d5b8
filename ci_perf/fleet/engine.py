"""What every engine can do: four methods, and the words in which it answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ci_perf.model.fleet import Attempt, NodeClass

# "ended" says that the job is over, whatever came of it; "lost" that the engine lost its node, has
# ended it on its own account, or does not know it any more.
JobState = Literal["queued", "running", "ended", "lost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineJob:
    """Attempts that an engine is given at once: they want the same class and avoid the same nodes.

    ``file`` is the JobFile that a node reads to find its attempt, by its index.
    """

    name: str
    file: str
    class_name: str
    node_class: NodeClass
    avoid: tuple[str, ...]
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """An attempt that the engine may have; ``handle`` is empty where nobody heard of one."""

    attempt: Attempt
    handle: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What the engine says of an attempt; ``detail`` is its own word for the state."""

    state: JobState
    node: str = ""
    detail: str = ""


class FleetEngine(Protocol):
    """Queues, places and kills. It must run nothing twice on its own: retries are the ledger's.

    ``poll_s`` is after how many seconds it may be asked again.
    """

    poll_s: float

    def submit(self, job: EngineJob) -> Mapping[str, str]:
        """Take all attempts of a job; return their handles by nonce. Raises EngineError: none."""

    def poll(self, placed: Sequence[Placed]) -> Mapping[str, Observation]:
        """Say by nonce what has become of attempts; it knows nothing of one that it leaves out.

        Raises EngineError: it does not answer.
        """

    def cancel(self, placed: Sequence[Placed]) -> None:
        """End attempts, by their handles or by the names of their jobs; unknown ones are ended.

        Raises EngineError: it does not answer.
        """

    def close(self) -> None:
        """Let go of what this process holds of it."""
