"""Reduce the numbers that a workload computes to a few, by which two runs are compared."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ci_perf.measuring import user_code
from ci_perf.measuring.device import Device
from ci_perf.measuring.user_code import WorkloadError
from ci_perf.model.process import Fingerprint
from ci_perf.workload import Workload

# Says why so many steps, of so many seconds each, cannot be made; empty when they can.
Refusal = Callable[[int, float], str]

# More tensors than this are a model's weights rather than a result.
MAX_TENSORS = 100
# Elements in double precision at a time: what we copy must not become the peak of memory.
_CHUNK = 2**16


def take(
    workload: Workload, device: Device, steps: int, refusal: Refusal = lambda _steps, _step_s: ""
) -> Fingerprint:
    """Note the losses of the first `steps` steps, the one already made among them, then the output.

    Nothing is noted where `steps` is 0, nor where `refusal` gives a reason against the steps that
    are left, for fewer losses would look like other numbers. Raises WorkloadError for what is no
    finite number.
    """
    if steps == 0 or (workload.loss is None and workload.output is None):
        return Fingerprint(varies=workload.varies)
    losses: list[float] = []
    for position in range(steps):
        if position:
            step_s = device.time_block(workload.step, 1).step_s
            if reason := refusal(steps - position - 1, step_s):
                return Fingerprint(varies=workload.varies, absent=reason)
        if workload.loss is not None:
            losses.append(user_code.finite(workload.loss(), "loss"))
    result = workload.output() if workload.output is not None else None
    sums = checksums(result) if result is not None else ()
    return Fingerprint(losses=tuple(losses), checksums=sums, varies=workload.varies)


def checksums(output: object) -> tuple[float, ...]:
    """Return two numbers per tensor: the mean of its absolute values, and a weighted mean.

    The weights are cos(0), cos(1), …: they see values that have changed places, to which a plain
    mean is blind. Raises WorkloadError.
    """
    sums: list[float] = []
    for position, leaf in enumerate(_leaves(output)):
        if position == MAX_TENSORS:
            raise WorkloadError(
                f"output: expected at most {MAX_TENSORS} tensors, found more; return the result "
                "of the step, not all that led to it"
            )
        name = f"checksum of tensor {position} of output"
        sums += [user_code.finite(value, name) for value in _reduce_tensor(leaf)]
    if not sums:
        raise WorkloadError(
            "output: expected at least one tensor or number, found none; remove `output` if "
            "the step has no result"
        )
    return tuple(sums)


def _leaves(output: object) -> Iterator[Any]:
    """Walk through sequences and mappings in their own order, to whatever has elements."""
    if isinstance(output, Mapping):
        for value in output.values():
            yield from _leaves(value)
    elif isinstance(output, Sequence) and not isinstance(output, (str, bytes)):
        for value in output:
            yield from _leaves(value)
    elif output is not None:
        yield output


def _reduce_tensor(leaf: Any) -> tuple[float, float]:  # noqa: ANN401  whatever the author returns
    torch = sys.modules.get("torch")
    if isinstance(leaf, (bool, int, float)):
        return abs(float(leaf)), float(leaf)
    try:
        assert torch is not None
        tensor = torch.as_tensor(leaf).detach()
    except Exception:  # noqa: BLE001  no torch, or a type that it cannot read
        raise WorkloadError(
            "output: expected tensors, numbers, or sequences and mappings of them, "
            f"found {type(leaf).__name__}"
        ) from None
    if tensor.is_nested:
        tensor = torch.cat([part.reshape(-1) for part in tensor.unbind()])
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    flat = tensor.to_dense().reshape(-1)
    size, places = 0.0, 0.0
    for start in range(0, flat.numel(), _CHUNK):
        chunk = flat[start : start + _CHUNK].double()
        weights = torch.arange(start, start + chunk.numel(), device=chunk.device).double().cos()
        size += float(chunk.abs().sum())
        places += float((chunk * weights).sum())
    elements = max(flat.numel(), 1)
    return size / elements, places / elements
