"""The answer of `ci-perf explain` as tables."""

from ci_perf.features.explain import causes, page
from ci_perf.features.explain.answer import ExplainedWorkload, ExplainedWorkloads
from ci_perf.report import tables
from tests.step_profiles import a_step, a_use, both

MORE = both(a_step(a_use()), a_step(a_use(calls=9)), workload="mlp")


def shown(*workloads, base="", operators=False):
    answer = ExplainedWorkloads(suite="smoke", base=base, workloads=workloads)
    return tables.markdown(page.build_page(answer, operators=operators))


def test_profiles_of_both_sides_are_compared_by_function():
    explanation = causes.explain(MORE, is_gain=False)

    text = shown(ExplainedWorkload(workload="mlp", explanation=explanation), base="0123456789abc")

    assert text.startswith("**1 workload of `smoke` explained, against `0123456789ab`**\n")
    assert "`mlp`: the only thing that a step does differently" in text
    assert "more: `aten::mm`" in text


def test_what_has_no_profile_says_why():
    assert "`mlp`: `no \\| data`" in shown(ExplainedWorkload(workload="mlp", trouble="no | data"))
