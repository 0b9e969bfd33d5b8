"""Which generated kernels of two sides have the same code, and which ones stand for each other."""

import pytest

from ci_perf.judging.generated import has_other_kernels, pair_kernels
from ci_perf.model.process import DeviceWork, GeneratedCode, GeneratedKernel
from tests.runs import a_process


def kernels(words):
    """Make kernels of "name:digest" words."""
    pairs = (word.split(":") for word in words.split())
    return tuple(GeneratedKernel(name=name, digest=digest) for name, digest in pairs)


def spell(kernel):
    return f"{kernel.name}:{kernel.digest}" if kernel else "-"


@pytest.mark.parametrize(
    ("base", "head", "same", "other"),
    [
        ("a:1 b:2", "b:2 a:1", ["b:2 b:2", "a:1 a:1"], []),
        ("a:1", "b:1", ["a:1 b:1"], []),  # the code decides, whatever it is called
        ("a:1", "a:1 b:1", ["a:1 a:1", "a:1 b:1"], []),
        ("a:1 b:1", "b:1", ["b:1 b:1"], []),
        ("a:1 b:2", "b:3 a:4", [], ["b:2 b:3", "a:1 a:4"]),
        ("a:1 a:2", "a:3 a:4", [], ["a:1 a:3", "a:2 a:4"]),
        ("a:1 b:2", "c:3 b:4", [], ["b:2 b:4", "a:1 c:3"]),
        ("a:1", "", [], ["a:1 -"]),
        ("", "a:1", [], ["- a:1"]),
        ("", "", [], []),
    ],
)
def test_kernels_are_paired_by_code_then_by_name_then_in_order(base, head, same, other):
    pairs = pair_kernels(kernels(base), kernels(head))

    assert [" ".join(map(spell, both)) for both in pairs.same] == same
    assert [" ".join(map(spell, both)) for both in pairs.other] == other
    assert len(pairs.same) + pairs.in_head == len(kernels(head))


@pytest.mark.parametrize(
    ("base", "head", "is_other"),
    [
        ({}, {}, False),
        ({"generated": "a:1"}, {"generated": "b:1"}, False),
        ({"generated": "a:1"}, {"generated": "a:2"}, True),
        ({"generated": "a:1"}, {}, True),
        ({"sequence": "1"}, {"sequence": "1"}, False),
        ({"sequence": "1"}, {"sequence": "2"}, True),
        ({"sequence": "1"}, {"sequence": ""}, False),  # not known
    ],
)
def test_other_kernels_are_other_code_or_another_sequence(base, head, is_other):
    def a_side(generated="", sequence=None):
        return a_process(
            generated=GeneratedCode(kernels=kernels(generated)) if generated else None,
            device_work=None if sequence is None else DeviceWork(sequence=sequence),
        )

    assert has_other_kernels(a_side(**base), a_side(**head)) is is_other
