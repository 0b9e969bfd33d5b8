"""Which suite the base has: another test needs a repository, tests/integration/cli."""

from pathlib import Path

import pytest

from ci_perf import suite
from ci_perf.gate.programs import suite_folder

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("name", "workloads", "folder"),
    [
        ("builtin:smoke", ROOT / "workloads", None),
        ("smoke", ROOT / "workloads", Path("workloads")),
        ("smoke", Path("workloads"), Path("workloads")),
        ("smoke", Path("../elsewhere"), None),
    ],
)
def test_only_a_suite_below_the_root_may_differ_between_the_sides(name, workloads, folder):
    plan = suite.plan(ROOT / "workloads", name, root=ROOT)

    assert suite_folder(plan, workloads) == folder
