"""What torch.compile generates on a CPU, by real launches: each has its own folder and cache."""

import json
import os
import re
import subprocess
import sys

import msgspec
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
        todo = msgspec.structs.replace(todo, keeps_sources=True)
        process = result_of(LocalLauncher(tmp_path).launch(todo)).process
        return SideProfile(step_time_s=1e-3, generated=process.generated)

    return launch


def test_a_changed_constant_is_named_and_code_in_another_place_is_the_same(side):
    base = side("base", SOURCE)
    head = side("a/head", f"# a line that moves all others\n{SOURCE.replace('2.5', '1.5')}")
    profile = Profile(workload="w", items_per_step=1, item_unit="step", base=base, head=head)
    comparison = a_comparison(a_change("w", Verdict.REGRESSED, ratio=1.1), profiles=(profile,))

    page = markdown.render(comparison).replace("\N{NO-BREAK SPACE}", " ")
    (counts, after) = re.findall(r"for `w`\*\*: (.*?)\n\n(.*?)\n\n", page, re.DOTALL)[0]
    before, edited = ({k.name: k.source for k in s.generated.kernels} for s in (base, head))
    assert "2.5" in before["cpp_fused_mul_sin"]
    assert before["cpp_fused_mul_sin"].replace("2.5", "1.5") == edited["cpp_fused_mul_sin"]
    assert counts == "2 kernels: 1 with the same code, 1 other"
    assert after == "- `cpp_fused_mul_sin`: other code"


# A function, and what ten edits of it return. Each is compiled on its own.
STEP = "((x * 2.5).sin() + y).sum(1)"
EDITS = {
    "constant": STEP.replace("2.5", "2.75"),
    "operator": STEP.replace("sin", "cos"),
    "order": "((x * 2.5) + y).sin().sum(1)",
    "operand": STEP.replace("+ y", "+ x"),
    "type": STEP.replace("x *", "x.double() *"),
    "shape": STEP.replace("x", "x[:32]").replace("y", "y[:32]"),
    "layout": STEP.replace("x", "x.t()"),
    "axis": STEP.replace("sum(1)", "sum(0)"),
    "reduction": STEP.replace("sum(1)", "amax(1)"),
    "fusion": "(apart((x * 2.5).sin()) + y).sum(1)",
}
COMPILE_EACH = """
import json, sys
import torch
from ci_perf.measuring.generated_kernels import read_generated
apart = torch.compiler.disable(lambda x: x)
x, y = torch.ones(64, 64), torch.ones(64, 64)
known, digests = set(), {}
for name, source in json.loads(sys.argv[1]).items():
    torch.compile(eval("lambda x, y: " + source))(x, y)
    kernels = {kernel.digest for kernel in read_generated().kernels}
    digests[name] = sorted(kernels - known)
    known |= kernels
print(json.dumps(digests))
"""


def test_ten_edits_have_other_code_and_eleven_functions_the_same_in_another_place(tmp_path):
    functions = json.dumps({"none": STEP, **EDITS})
    children = []
    for side, moved in (("base", ""), ("another/head", "# A line that moves all others.\n" * 9)):
        script = tmp_path / side / "script.py"
        script.parent.mkdir(parents=True)
        script.write_text(moved + COMPILE_EACH)
        cache = {"TORCHINDUCTOR_CACHE_DIR": str(script.parent / "cache")}
        command = [sys.executable, script, functions]
        children.append(subprocess.Popen(command, env={**os.environ, **cache}, stdout=-1))
    base, head = (json.loads(child.communicate(timeout=240)[0]) for child in children)

    assert len(base) == 11
    assert base == head
    # What an edit has in common with a function before it is left out.
    assert all(base.values())
