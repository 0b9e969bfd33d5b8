"""What torch.compile generates on a CPU, by real launches: each has its own folder and cache."""

import re

import pytest

from ci_perf.launch.local import LocalLauncher
from ci_perf.model.comparison import Verdict
from ci_perf.model.process import Profile, SideProfile
from ci_perf.report import markdown
from tests.comparisons import a_change, a_comparison
from tests.launches import result_of

SOURCE = """
import torch
from ci_perf.workload import Workload
@torch.compile
def scale(numbers):
    return (numbers * 2.5).sin()
@torch.compile
def add(numbers):
    return numbers.exp() + 1
def build(context):
    numbers = torch.linspace(0, 1, 4096)
    return Workload(step=lambda: (scale(numbers), add(numbers)))
"""


@pytest.fixture
def side(task, tmp_path):
    """Launch a source in a folder; return what its side of a comparison shows."""

    def launch(folder, source):
        todo = task(folder, source, fingerprint_steps=0, memory_steps=1, timeout_s=300.0)
        process = result_of(LocalLauncher(tmp_path).launch(todo)).process
        return SideProfile(step_time_s=1e-3, generated=process.generated)

    return launch


def test_a_changed_constant_is_named_and_code_in_another_place_is_the_same(side):
    base = side("base", SOURCE)
    head = side("a/head", f"# a line that moves all others\n{SOURCE.replace('2.5', '1.5')}")
    profile = Profile(workload="w", items_per_step=1, item_unit="step", base=base, head=head)
    comparison = a_comparison(a_change("w", Verdict.REGRESSED, ratio=1.1), profiles=(profile,))

    (after,) = re.findall(
        r"for `w`\*\* differs:\n\n(.*?)\n\n", markdown.render(comparison), re.DOTALL
    )
    assert len(base.generated.kernels) == 2
    assert after == "- `cpp_fused_mul_sin`: other code"
