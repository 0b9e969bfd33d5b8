import importlib.util
from pathlib import Path

import pytest

from ci_perf.model import task


@pytest.mark.parametrize(
    "module",
    [task.WORKER, task.RANKS, task.CANARIES, task.MACHINE, task.GPU_STATES, task.MONITOR],
)
def test_a_module_that_a_parent_starts_by_name_exists_and_can_be_run(module):
    spec = importlib.util.find_spec(module)

    assert spec is not None
    assert spec.origin is not None
    assert 'if __name__ == "__main__":' in Path(spec.origin).read_text()


def test_each_rank_has_files_of_its_own():
    assert task.name_rank_file(task.FAILURE, 1) == "trouble.1.json"
    assert task.name_rank_file(task.PHASE, 0) == "phase.0"
