"""What the launches of a workload come to."""

from ci_perf.model.process import WorkerResult
from ci_perf.session import results
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

    found = results.measured(results.Progress(a_planned("w"), results=[result]))

    assert (found.items_per_step, found.item_unit, found.items_per_epoch) == (64, "image", 50_000)
