"""Causes that are planted in small models: one change of the text each, and what must be named.

The models are in `models/`. Each has a line where helpers are defined, and one where two harmless
decoys are put into the head beside the cause, as any pull request has.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ci_perf.model.explanation import CauseKind

Change = tuple[str, str]

# Operators that call others, for a table with whole durations.
CALLED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "aten::linear": ("aten::addmm", "aten::mm"),
    "aten::matmul": ("aten::mm", "aten::bmm"),
    "aten::einsum": ("aten::bmm",),
    "aten::conv1d": ("aten::convolution",),
    "aten::conv2d": ("aten::convolution",),
    "aten::_convolution": ("aten::convolution",),
    "aten::mkldnn_convolution": ("aten::convolution",),
    "aten::batch_norm": ("aten::native_batch_norm",),
    "aten::_batch_norm_impl_index": ("aten::native_batch_norm",),
    "aten::max_pool2d": ("aten::max_pool2d_with_indices",),
    "aten::scaled_dot_product_attention": (
        "aten::_scaled_dot_product_flash_attention_for_cpu",
        "aten::bmm",
    ),
    "aten::_scaled_dot_product_attention_math": ("aten::bmm",),
    "aten::contiguous": ("aten::clone",),
    "aten::clone": ("aten::copy_",),
    "aten::to": ("aten::_to_copy",),
    "aten::_to_copy": ("aten::copy_",),
    "aten::item": ("aten::_local_scalar_dense",),
    "aten::softmax": ("aten::_softmax",),
    "aten::dropout": ("aten::native_dropout", "aten::bernoulli_"),
    "aten::norm": ("aten::linalg_vector_norm",),
    "aten::randn": ("aten::normal_",),
    "aten::gru": ("aten::gru_cell",),
    "aten::embedding_bag": ("aten::_embedding_bag",),
}

# The model whose step `torch.compile` compiles.
COMPILED: Final = "compiled"
HELPERS: Final = "# planted: helpers"
_DECOYS: Final = "# planted: decoys "
_HARMLESS: Final = """
def tidy(x):
    return x.unsqueeze(0).squeeze(0)


def note(number):
    return sum(range(number))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """One cause: changes of a model's text, and the right answer.

    ``functions`` are the places that may be named, and ``kinds`` what may be said of them.
    ``operators`` would be right in a table of operators by name. ``is_exact``: it leaves a trace in
    counts. ``seconds`` are planted in functions, where that is known.
    """

    model: str
    changes: tuple[Change, ...]
    functions: frozenset[str]
    kinds: frozenset[CauseKind]
    operators: frozenset[str] = frozenset()
    is_exact: bool = True
    is_memory: bool = False
    seconds: Mapping[str, float] | None = None


def plant(
    model: str,
    *changes: Change,
    at: str,
    kinds: str,
    operators: str = "",
    is_exact: bool = True,
    is_memory: bool = False,
    seconds: Mapping[str, float] | None = None,
) -> Planted:
    """Make a cause; functions, kinds and operators are words in one text."""
    return Planted(
        model=model,
        changes=changes,
        functions=frozenset(at.split()),
        kinds=frozenset(kinds.split()),  # type: ignore[arg-type]
        operators=frozenset(
            f"aten::{name}" if "::" not in name else name for name in operators.split()
        ),
        is_exact=is_exact,
        is_memory=is_memory,
        seconds=seconds,
    )


def sources(models: Mapping[str, str], planted: Planted) -> tuple[str, str, str]:
    """Return the text of the base, of the base with the decoys, and of the head.

    A change that finds nothing to replace is an error.
    """
    base = models[planted.model]
    return base, _with_decoys(base), _with_decoys(_changed(base, planted.changes))


def _changed(text: str, changes: tuple[Change, ...]) -> str:
    for before, after in changes:
        if text.count(before) != 1:
            raise ValueError(f"{before!r} is {text.count(before)} times in the model")
        text = text.replace(before, after)
    return text


def _with_decoys(text: str) -> str:
    lines = []
    for line in text.replace(HELPERS, _HARMLESS.strip()).splitlines():
        indent, mark, name = line.partition(_DECOYS)
        lines += [f"{indent}{name} = tidy(tidy({name}))", f"{indent}note(3)"] if mark else [line]
    return "\n".join(lines) + "\n"


def helper(text: str) -> Change:
    """Define a function before all others of the model."""
    return HELPERS, f"{text.strip()}\n\n\n{HELPERS}"
