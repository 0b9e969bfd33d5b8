"""Read a trace of torch.profiler, as Kineto writes it: what ran on the host and on a device.

A trace is as the measured code has left it: whatever is no event is left out, and counted. How much
of a time events cover that may overlap is a `Cover`.
"""

import bisect
import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from ci_perf.measuring.profiling.origins import shown

# ROCm's events have CUDA's names; "Kernel" and "Runtime" are those of older versions of torch.
_DEVICE: Final = {"kernel": "kernel", "gpu_memcpy": "copy", "gpu_memset": "set"} | {
    "memcpy": "copy",
    "memset": "set",
}
_CALLS: Final = frozenset({"cuda_runtime", "cuda_driver", "hip_runtime", "runtime"})
_OPERATORS: Final = frozenset({"cpu_op", "operator"})
_ANNOTATION: Final = "user_annotation"
_STEP: Final = "ProfilerStep#"
# Thirty years in microseconds; clocks begin at 1970 or later.
_LATEST_US: Final = 1e18
_LARGEST: Final = 2**63 - 1
# Templates make names of many kilobytes, whose end tells nothing that their beginning does not.
_NAME_CHARS: Final = 2_000
_SECOND: Final = 1e-6


class HostSpan(NamedTuple):
    """Something that a thread of the host did; seconds since an unknown moment."""

    start: float
    end: float
    name: str
    correlation: int = 0


class DeviceWork(NamedTuple):
    """Something that a device did. ``correlation`` is that of the call that launched it."""

    start: float
    end: float
    name: str
    kind: str
    device: int
    correlation: int


class Launch(NamedTuple):
    """A call of the driver or the runtime, by its correlation."""

    start: float
    end: float
    thread: str


@dataclass(slots=True)
class Events:
    """All that a digest needs of a trace; threads of the host are told apart by process, too.

    ``damaged`` is how many events were left out, because their times are impossible.
    """

    work: list[DeviceWork] = field(default_factory=list)
    launches: dict[int, Launch] = field(default_factory=dict)
    operators: dict[str, list[HostSpan]] = field(default_factory=lambda: defaultdict(list))
    calls: dict[str, list[HostSpan]] = field(default_factory=lambda: defaultdict(list))
    annotations: list[HostSpan] = field(default_factory=list)
    steps: list[HostSpan] = field(default_factory=list)
    damaged: int = 0
    _names: dict[str, str] = field(default_factory=dict)

    def add(self, event: dict[str, Any]) -> None:
        """Keep one event of a trace."""
        if event.get("ph") != "X" or not isinstance(event.get("cat"), str):
            return
        category = event["cat"].lower()
        is_device = category in _DEVICE
        if not is_device and category not in _CALLS | _OPERATORS | {_ANNOTATION}:
            return
        start, lasts = _microseconds(event.get("ts")), _microseconds(event.get("dur"))
        if start is None or lasts is None or lasts < 0:
            self.damaged += 1
            return
        begin, end, name = start * _SECOND, (start + lasts) * _SECOND, self._name(event)
        arguments = event.get("args")
        arguments = arguments if isinstance(arguments, dict) else {}
        correlation = _integer(arguments.get("correlation"))
        thread = f"{event.get('pid')}/{event.get('tid')}"[:100]
        if is_device:
            device = _integer(arguments.get("device", event.get("pid")))
            self.work.append(DeviceWork(begin, end, name, _DEVICE[category], device, correlation))
        elif category in _CALLS:
            self.calls[thread].append(HostSpan(begin, end, name, correlation))
            if correlation:
                self.launches.setdefault(correlation, Launch(begin, end, thread))
        elif category in _OPERATORS:
            self.operators[thread].append(HostSpan(begin, end, name))
        elif name.startswith(_STEP):
            self.steps.append(HostSpan(begin, end, name))
        else:
            self.annotations.append(HostSpan(begin, end, name))

    def _name(self, event: dict[str, Any]) -> str:
        """Return the event's name, short, and as one object for all events that have it."""
        name = event.get("name")
        whole = name if isinstance(name, str) and name else "?"
        if whole not in self._names:
            is_kernel = _DEVICE.get(event["cat"].lower()) == "kernel"
            self._names[whole] = shown(kernel_name(whole) if is_kernel else whole)
        return self._names[whole]


def of(listed: Iterable[object]) -> Events:
    """Return the events of a list, as they stand in a trace."""
    events = Events()
    for event in listed:
        if isinstance(event, dict):
            events.add(event)
    return events


def read(text: str | bytes) -> Events:
    """Read a whole trace. Raises ValueError with a sentence: it is none.

    Each event is dropped as soon as what is needed of it is kept.
    """
    events = Events()

    def keep(node: dict[str, Any]) -> dict[str, Any] | None:
        if "ph" not in node:
            return node
        events.add(node)
        return None

    try:
        whole = json.loads(text, object_hook=keep)
    except RecursionError:
        raise ValueError("the trace is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"the trace is not valid JSON: {error}") from None
    listed = whole.get("traceEvents") if isinstance(whole, dict) else whole
    if not isinstance(listed, list):
        raise ValueError("the trace has no list of events")  # noqa: TRY004  to the reader it is all one
    return events


def kernel_name(name: str) -> str:
    """Return a kernel's name without return type, arguments and template arguments.

    Its anonymous namespaces are of no use to a reader; Triton numbers its kernels anew in each
    compilation.
    """
    name = name[:_NAME_CHARS].removeprefix("void ").replace("(anonymous namespace)::", "")
    depth, kept = 0, []
    for letter in name:
        if letter in "<({":
            depth += 1
        elif letter in ">)}":
            depth = max(depth - 1, 0)
        elif not depth:
            kept.append(letter)
    short = "".join(kept).strip()
    if short.startswith("triton_"):
        short = short.rstrip("0123456789").rstrip("_")
    return short or name


def _microseconds(value: object) -> float | None:
    """Return a number that can be a time; `None` for any other thing."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # NaN compares as false, too; `math.isfinite` refuses very large integers.
    return float(value) if abs(value) <= _LATEST_US else None


def _integer(value: object) -> int:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and 0 <= value <= _LARGEST else 0  # type: ignore[operator,return-value]


class Lasting(Protocol):
    """Anything with a start and an end."""

    @property
    def start(self) -> float:
        """Seconds since an unknown moment."""

    @property
    def end(self) -> float:
        """Seconds since the same moment."""


class Cover:
    """The union of spans of seconds."""

    def __init__(self, spans: Iterable[tuple[float, float]], *, bridge: float = 0.0) -> None:
        """Take (start, end) in any order; `bridge` seconds between two of them count as covered."""
        self.starts: list[float] = []
        self.ends: list[float] = []
        for start, end in sorted(spans):
            if self.ends and start <= self.ends[-1] + bridge:
                self.ends[-1] = max(self.ends[-1], end)
            else:
                self.starts.append(start)
                self.ends.append(end)
        self._before = [0.0]
        for start, end in zip(self.starts, self.ends, strict=True):
            self._before.append(self._before[-1] + (end - start))

    def spans(self) -> list[tuple[float, float]]:
        """Return (start, end) of what is covered, in order."""
        return list(zip(self.starts, self.ends, strict=True))

    @property
    def whole(self) -> float:
        """Return the seconds of all spans together."""
        return self._before[-1]

    def seconds(self, start: float, end: float) -> float:
        """Return how many of the seconds from `start` to `end` are covered."""
        return max(self._until(end) - self._until(start), 0.0) if end > start else 0.0

    def touching(self, start: float, end: float) -> float:
        """Return the whole length of the spans of which any part lies from `start` to `end`."""
        first = bisect.bisect_left(self.ends, start)
        last = bisect.bisect_right(self.starts, end)
        return self._before[last] - self._before[first] if last > first else 0.0

    def _until(self, moment: float) -> float:
        index = bisect.bisect_right(self.starts, moment)
        if not index:
            return 0.0
        return self._before[index - 1] + (
            min(moment, self.ends[index - 1]) - self.starts[index - 1]
        )


def cover(spans: Iterable[Lasting]) -> Cover:
    """Return the union of things that last."""
    return Cover((span.start, span.end) for span in spans)
