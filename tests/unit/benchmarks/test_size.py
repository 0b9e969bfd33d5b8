"""The budget on code lines: it counts code, and this repository is within it."""

import pytest

from benchmarks import size


@pytest.mark.parametrize("part", size.BUDGET)
def test_a_part_is_no_larger_than_its_budget(part):
    lines = size.count_folders(size.ROOT / part).total()

    assert lines <= size.BUDGET[part], "delete as much as was added: the budget only falls"


def test_a_budget_is_not_far_above_what_is_there():
    """One that is far above would let the size grow again."""
    for part, budget in size.BUDGET.items():
        assert budget - size.count_folders(size.ROOT / part).total() <= 0.01 * budget, part


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
