"""Stand between a program and torch's operators: one rule for all who count them."""

import contextlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

Call = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]

_ATTENTION = "_scaled_dot_product_flash_attention"


def flop_formulas() -> Mapping[Any, Callable[..., Any]]:
    """Return torch's formulas by operator; it lacks those of fused attention on a CPU.

    Called once torch has been imported.
    """
    import torch
    from torch.utils.flop_counter import flop_registry

    aten = torch.ops.aten
    for end in ("", "_backward"):
        on_cpu, on_gpu = (getattr(aten, f"{_ATTENTION}{where}{end}") for where in ("_for_cpu", ""))
        flop_registry.setdefault(on_cpu, flop_registry[on_gpu])
    formulas: Mapping[Any, Callable[..., Any]] = flop_registry
    return formulas


def call_on_dispatch(call: Call) -> contextlib.AbstractContextManager[object]:
    """Within, `call` gets each operator, its arguments and its keywords, and returns its result.

    Below autograd, where backward operators pass as well. In inference mode, composite operators
    arrive whole: their parts are passed on instead, but of those of which torch knows the FLOPs.
    Called once torch has been imported.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    formulas = flop_formulas()
    device_of = torch.ops.prim.device.default

    class Calling(TorchDispatchMode):  # type: ignore[misc]  # untyped
        """Hands each operator over."""

        supports_higher_order_operators = True

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            """Only what has been compiled must be kept from compiling us.

            To import dynamo takes a second, for a process that had no use for it.
            """
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
            is_whole = getattr(func, "_overloadpacket", None) in formulas
            if not is_whole and hasattr(func, "decompose") and func is not device_of:
                with self:
                    made: object = func.decompose(*args, **kwargs)
                if made is not NotImplemented:
                    return made
            result: object = call(func, args, kwargs)
            return result

    mode: contextlib.AbstractContextManager[object] = Calling()
    return mode
