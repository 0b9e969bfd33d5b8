"""What a job with a token loads: nothing that could launch code of a pull request."""

import subprocess
import sys

MODULE = "ci_perf.cli.github_command"
LAUNCHING = ("launch", "measuring", "session", "worktree")
# A fresh interpreter, because other tests have loaded everything in this one.
PROGRAM = f"""
import importlib, sys
importlib.import_module("{MODULE}")
from ci_perf import hooks
for moment in ("after_judging", "section", "line_notes"):
    assert [*map(hooks.load, hooks.find_targets(moment))]
for name in sorted(sys.modules):
    print(name)
"""


def test_a_command_that_holds_a_token_loads_nothing_that_launches():
    child = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    loaded = child.stdout.split()

    assert MODULE in loaded
    rooms = tuple(f"ci_perf.{room}" for room in LAUNCHING)
    assert [name for name in loaded if name.startswith(rooms)] == []
