"""What the launches of a workload come to, and where its data is kept."""

from ci_perf.model.process import WorkerResult
from ci_perf.session import lab
from ci_perf.session.runner import WorkloadProgress
from tests.plans import a_planned
from tests.runs import a_process


def test_the_run_keeps_what_the_workload_said_of_its_items():
    result = WorkerResult(
        items_per_step=64,
        item_unit="image",
        items_per_epoch=50_000,
        precision="fp32",
        knobs={},
        process=a_process(),
    )

    measured = WorkloadProgress(a_planned("w"), results=[result]).measured()

    items = (measured.items_per_step, measured.item_unit, measured.items_per_epoch)
    assert items == (64, "image", 50_000)


def test_data_lie_where_the_variable_says_else_in_the_cache_of_the_user(monkeypatch):
    monkeypatch.delenv("CI_PERF_DATA_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert lab.data_folder() == "/cache/ci-perf/data"

    monkeypatch.setenv("CI_PERF_DATA_DIR", "/data")
    assert lab.data_folder() == "/data"
