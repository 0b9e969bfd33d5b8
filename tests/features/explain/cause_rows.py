"""Steps with a known length, and what explains a row that such a step has moved."""

from ci_perf.features.explain import causes, order
from ci_perf.model.comparison import Verdict
from tests.comparisons import a_change
from tests.features.explain.step_profiles import a_step, a_use, timed_pairs

STEP_S = 0.1
# Ten operators that do the same on both sides, half of the step.
REST = tuple(a_use(f"aten::rest{i}", 5, call_s=1e-3) for i in range(10))
SLOWER = a_change("w", Verdict.REGRESSED, base=STEP_S, ratio=1.1)
FASTER = a_change("w", Verdict.IMPROVED, base=STEP_S, ratio=0.9)


def step(*uses, **more):
    return a_step(*REST, *uses, **{"step_s": STEP_S} | more)


def explained(base, head, row=SLOWER, **more):
    pairs = timed_pairs(base, head, **more)
    return explained_row(pairs, row)


def explained_row(profiled, row=SLOWER):
    is_gain = row.verdict is Verdict.IMPROVED
    return causes.explain(profiled, is_gain=is_gain, row=row, move=order.read_move(row))


def shown(explanation):
    return [(cause.kind, cause.place.function) for cause in explanation.causes]


def left(explanation):
    return [cause.place.function for cause in explanation.others]
