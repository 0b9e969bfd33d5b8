"""What the run of two commits says of a metric."""

import msgspec
import pytest

from ci_perf.features.watch.sessions import read_answer
from ci_perf.gate.commit_pairs import ExplainedPairsJudge, PairsJudge
from ci_perf.judging.policy import limits_on
from ci_perf.model.suite import Tiers
from tests.histories import a_head, in_turns, pairs
from tests.step_profiles import a_step, a_use, both


@pytest.mark.parametrize(
    ("make_judge", "kinds"), [(ExplainedPairsJudge, ["more"]), (PairsJudge, [])]
)
def test_a_loss_has_its_cause_where_a_culprit_is_asked(make_judge, kinds):
    counted = (both(a_step(a_use("aten::mm")), a_step(a_use("aten::mm", calls=9))),)
    run = msgspec.structs.replace(in_turns(a_head(), pairs(1.2)), profiled=counted)

    answer = read_answer(run, make_judge(limits_on, Tiers()))

    (row,) = answer.losses
    assert row.metric == "step_time_s"
    assert [each.kind for each in (row.explanation.causes if row.explanation else ())] == kinds
