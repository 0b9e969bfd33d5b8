"""What the launches of a workload come to, and where its data is kept."""

from ci_perf.model.process import WorkerResult
from ci_perf.session import runner
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


def test_a_user_without_a_home_has_a_place_for_data(monkeypatch):
    """As containers have it: HOME is unset, and no password file knows the user."""
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("CI_PERF_DATA_DIR", raising=False)

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    assert "ci-perf" in runner.data_folder(homeless)
    monkeypatch.setenv("CI_PERF_DATA_DIR", "/data")
    assert runner.data_folder(homeless) == "/data"
