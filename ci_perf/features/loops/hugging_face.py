"""Times the steps of a Hugging Face `Trainer`."""

from typing import Any

from transformers import TrainerCallback

from ci_perf.features.loops.recording import open_loop, record


class HuggingFaceCallback(TrainerCallback):  # type: ignore[misc]  # untyped, see pyproject.toml
    """Ends the training of a check once `steps` steps are timed after `warmup`; else does nothing.

    ``Trainer(…, callbacks=[ci_perf.HuggingFaceCallback()])``. Losses are those that the trainer
    logs.
    """

    def __init__(self, *, warmup: int = 20, steps: int = 50) -> None:
        self._asked = (warmup, steps)

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:  # noqa: ANN401  the trainer's
        """Begin with the first step; each does the samples of all its batches."""
        del state, control, others
        samples = args.train_batch_size * args.gradient_accumulation_steps * args.world_size
        self._recorder = open_loop(self, *self._asked, samples)
        if self._recorder is not None:
            self._recorder.begin()

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:  # noqa: ANN401  the trainer's
        """End a step of the optimizer, and the training after the last one."""
        del args, state, others
        if self._recorder is not None and self._recorder.end():
            control.should_training_stop = True

    def on_log(self, *_: Any, logs: dict[str, Any] | None = None, **others: Any) -> None:  # noqa: ANN401  the trainer's
        """Keep the loss that is logged."""
        del others
        if logs and "loss" in logs:
            record(loss=logs["loss"])
