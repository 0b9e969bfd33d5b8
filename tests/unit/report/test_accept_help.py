from typing import Any

from ci_perf.baselines.accept import Acceptance, Action
from ci_perf.report import accept_help

# A report of a change reads neither the file nor the baseline.
UNREAD: Any = None


def a_file(action, *, before=None, after=None, began=(), changed_numerics=False):
    acceptance = Acceptance(
        workload="w",
        path=UNREAD,
        action=action,
        before=before or {},
        after=after or {},
        began=began,
        changed_numerics=changed_numerics,
        baseline=UNREAD,
        program=None,
    )
    return {"w.json": acceptance}


def test_a_metric_that_moved_on_is_named_with_both_numbers():
    shown = accept_help.result(
        a_file(
            Action.NEW_EPOCH,
            before={"step_time_s": 1e-3},
            after={"step_time_s": 2e-3},
            began=("fingerprint", "step_time_s"),
            changed_numerics=True,
        )
    )

    assert shown.splitlines() == [
        "moved on  w.json",
        "          numerics: the losses or the output changed",
        "          a new epoch begins: step time",
        "          step time: 1.00 ms → 2.00 ms (+100 %)",
    ]


def test_what_is_kept_is_one_line():
    kept = a_file(Action.KEPT, after={"step_time_s": 1.0})

    assert accept_help.result(kept) == "kept      w.json"
    assert accept_help.result({}) == "nothing to accept"
