"""What is not the same about the environments of two sides: the image first, then the rest."""

from collections.abc import Sequence

from ci_perf.judge.comparability import NONE
from ci_perf.model.comparison import Comparison, Difference
from ci_perf.report import words
from ci_perf.report.escape import Words
from ci_perf.report.words import Phrase

_IMAGE = "image"
# What comes with an image, the likeliest cause first; the driver and the kernel are the host's.
_BROUGHT = ("torch", "cuda", "cudnn", "python", "transformers")


def of(comparison: Comparison) -> list[Phrase]:
    """Name the soft facts that differ: what the image brought, and what it did not."""
    every = comparison.differences
    images = [one for one in every if one.field == _IMAGE]
    brought = [one for one in every if images and one.field in _BROUGHT]
    rest = [one for one in every if one not in images and one not in brought]
    said = (_image(images, brought), _environment(rest))
    return [phrase for phrase in said if phrase]


def _image(images: Sequence[Difference], brought: Sequence[Difference]) -> Phrase:
    if not images:
        return ()
    software = sorted(brought, key=lambda one: _BROUGHT.index(one.field))
    with_it: Phrase = (Words(": "), *words.joined(map(_fact, software))) if software else ()
    return (*_change(images), *with_it, Words(". A change below may be its doing."))


def _change(images: Sequence[Difference]) -> Phrase:
    """Say that an image took the place of another; a side without one was in no container."""
    if all(one.base == NONE for one in images):
        named = words.joined((one.head,) for one in images)
        return (Words("⚠️ Measured in a container now ("), *named, Words("), and in none before"))
    if all(one.head == NONE for one in images):
        named = words.joined((one.base,) for one in images)
        return (Words("⚠️ Measured in no container now, and in one before ("), *named, Words(")"))
    return (Words("⚠️ Image changed: "), *words.joined(map(_step, images)))


def _environment(rest: Sequence[Difference]) -> Phrase:
    if not rest:
        return ()
    return (
        Words("⚠️ Not the same environment: "),
        *words.joined(map(_fact, rest)),
        Words(". Such a difference may explain a change below, or hide one."),
    )


def _fact(one: Difference) -> Phrase:
    return (one.field, Words(" "), *_step(one))


def _step(one: Difference) -> Phrase:
    return (one.base or NONE, Words(" → "), one.head or NONE)
