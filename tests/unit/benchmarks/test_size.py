"""The budget on code lines: it counts code, and this repository is within it."""

import pytest

from benchmarks import size


@pytest.mark.parametrize("part", size.BUDGET)
def test_a_part_is_no_larger_than_its_budget_and_not_far_below(part):
    """A budget that is far above what is there would let the size grow again."""
    lines, budget = size.count_folders(size.ROOT / part).total(), size.BUDGET[part]

    assert lines <= budget, "delete as much as was added: the budget only falls"
    assert budget - lines <= 0.01 * budget, "lower the budget to what is there"


def test_only_lines_with_code_count():
    source = '''"""A docstring."""

import os
from typing import (
    Any,
)

# A comment.
TEXT = """two
lines"""


def half(number: int) -> float:
    """Return the half."""
    return number / 2  # exact
'''

    assert size.count_lines(source) == 4
