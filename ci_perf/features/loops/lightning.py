"""Times the steps of a Lightning `Trainer`."""

import importlib
import importlib.util
from typing import Any

from ci_perf.features.loops.recording import open_loop, record

# Lightning goes by two names, whose classes are not the same.
_NAMES = ("lightning.pytorch", "pytorch_lightning")


def _find_callback() -> Any:  # noqa: ANN401  the class
    """Return the base class of callbacks. Raises ImportError: no Lightning is installed."""
    for name in _NAMES:
        if importlib.util.find_spec(name.partition(".")[0]) is not None:
            return importlib.import_module(name).Callback
    raise ImportError(f"LightningCallback: expected {' or '.join(_NAMES)}, found neither")


class LightningCallback(_find_callback()):  # type: ignore[misc]  # its base is known when it is used
    """Ends the training of a check once `steps` steps are timed after `warmup`; else does nothing.

    ``Trainer(…, callbacks=[ci_perf.LightningCallback(items=batch_size)])``. The loss is what
    `training_step` returns.
    """

    def __init__(self, *, warmup: int = 20, steps: int = 50, items: float = 1) -> None:
        super().__init__()
        self._asked = (warmup, steps, items)

    def on_train_start(self, trainer: Any, module: Any) -> None:  # noqa: ANN401  Lightning's
        """Begin with the first step."""
        del trainer, module
        self._recorder = open_loop(self, *self._asked)
        if self._recorder is not None:
            self._recorder.begin()

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, *_: Any) -> None:  # noqa: ANN401  Lightning's
        """End a step, and the training after the last one."""
        del module
        if self._recorder is None:
            return
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        if loss is not None:
            record(loss=loss)
        if self._recorder.end():
            trainer.should_stop = True
