"""Numbers that cannot be noisy: how many operators a step calls, and how many FLOPs they are."""

import sys
from collections.abc import Callable
from typing import Any

from ci_perf.measure.device import Device
from ci_perf.model.process import Work

_REASON_CHARS = 500


def count(step: Callable[[], object], device: Device, parameters: int | None) -> Work:
    """Run one step under torch's dispatcher and count what comes by, backward pass included.

    A compiled step is counted as the program it was compiled from: torch runs that one while a
    dispatch mode is active. A step that cannot run so has no counts, and the reason.
    """
    if "torch" not in sys.modules:
        return _absent("the workload has not imported torch", parameters)
    try:
        operators, flops = _watched(step, device)
    except Exception as error:  # noqa: BLE001  the instrument's failure, not the workload's
        return _absent(f"{type(error).__name__}: {error}", parameters)
    return Work(operators=operators, flops=flops, parameters=parameters)


def _absent(reason: str, parameters: int | None) -> Work:
    return Work(operators=None, flops=None, parameters=parameters, absent=reason[:_REASON_CHARS])


def _watched(step: Callable[[], object], device: Device) -> tuple[int, int]:
    watch = _dispatch_mode()
    with watch:
        step()
    device.synchronize()
    return watch.operators, int(watch.flops)


def _dispatch_mode() -> Any:  # noqa: ANN401  torch is untyped, and imported late
    """Make what torch's dispatcher tells of every call; `operators` and `flops` count them."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import flop_registry

    device_of = torch.ops.prim.device.default

    class Watch(TorchDispatchMode):  # type: ignore[misc]  # untyped
        """Sees each call below autograd, where backward operators pass as well.

        torch's own FlopCounterMode counts the same FLOPs; it also follows modules, and takes a
        second to import dynamo into a process that had no use for it.
        """

        supports_higher_order_operators = True

        def __init__(self) -> None:
            super().__init__()
            self.operators = self.flops = 0

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            """Only what has been compiled must be kept from compiling us."""
            return "torch._dynamo" in sys.modules

        def __torch_dispatch__(
            self,
            func: Any,  # noqa: ANN401  torch's own signature
            types: object,
            args: tuple[object, ...] = (),
            kwargs: dict[str, object] | None = None,
        ) -> object:
            del types
            kwargs = kwargs or {}
            packet = getattr(func, "_overloadpacket", None)
            formula = flop_registry.get(packet)
            # Without autograd, composite operators arrive whole: their parts are what is counted.
            if formula is None and hasattr(func, "decompose") and func is not device_of:
                with self:
                    made: object = func.decompose(*args, **kwargs)
                if made is not NotImplemented:
                    return made
            result: object = func(*args, **kwargs)
            self.operators += 1
            if formula is not None:
                self.flops += formula(*args, **kwargs, out_val=result)
            return result

    return Watch()
