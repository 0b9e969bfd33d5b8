"""Steps with a known length, and what explains a row that such a step has moved."""

from ci_perf.features.explain import causes
from tests.step_profiles import a_step, a_use, timed_pairs

STEP_S = 0.1
# Ten operators that do the same on both sides, half of the step.
REST = tuple(a_use(f"aten::rest{i}", 5, call_s=1e-3) for i in range(10))


def step(*uses, **more):
    return a_step(*REST, *uses, **{"step_s": STEP_S} | more)


def explained(base, head, *, is_gain=False, **more):
    return causes.explain(timed_pairs(base, head, **more), is_gain=is_gain)


def shown(explanation):
    return [(cause.kind, cause.place.function) for cause in explanation.causes]


def left(explanation):
    return [cause.place.function for cause in explanation.others]
