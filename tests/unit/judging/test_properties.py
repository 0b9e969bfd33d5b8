"""What holds of the judge as a whole, from samples to verdicts, whatever was measured.

Properties of one stage alone stand beside its other tests; here a file goes through all of them.
"""

import itertools
import math
import random
import statistics
from itertools import pairwise

import msgspec
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ci_perf.judging import changes
from ci_perf.judging import samples as judge
from ci_perf.judging.candidates import Candidate, Fact, choose
from ci_perf.judging.metric_values import History
from ci_perf.judging.policy import CALM_LOOKS, MOST_PAIRS
from ci_perf.model.comparison import Verdict
from ci_perf.model.metrics import FIRST_STEP, HOST_RSS_PEAK, STEP_P95, STEP_TIME
from ci_perf.model.samples import Sampled, SampledMetric, Samples
from ci_perf.model.suite import Limit

# The same examples each time, and few: each judges a whole file several times.
few = settings(max_examples=60, derandomize=True)
PAIRS = MOST_PAIRS
TIME = SampledMetric(unit="s", kind="time")
BYTES = SampledMetric(unit="byte", kind="host_memory")
COUNT = SampledMetric(unit="count", kind="exact")
MIRRORED = {
    Verdict.REGRESSED: Verdict.IMPROVED,
    Verdict.IMPROVED: Verdict.REGRESSED,
}
# A gain that is likely has no name: nobody has to act.
UNPROVEN = {Verdict.LIKELY_SLOWER: Verdict.INCONCLUSIVE}


def mirrored(verdict):
    """What is said of the opposite change, as far as that can be told from the verdict alone."""
    verdict = MIRRORED.get(verdict, verdict)
    return UNPROVEN.get(verdict, verdict)


def proven(verdict):
    return UNPROVEN.get(verdict, verdict)


near = st.floats(0.9, 1.1)
launches = st.lists(near, min_size=1, max_size=4).map(tuple)
histories = st.lists(launches, min_size=1, max_size=4).map(tuple)
effects = st.sampled_from([0.9, 0.97, 1.0, 1.0, 1.02, 1.05])
spreads = st.sampled_from([0.0, 0.001, 0.004, 0.02])


def log_normal(noise, spread):
    return math.exp(noise.gauss(0, spread))


def a_workload(name, *, seed=0, effect=1.0, spread=0.004, sessions=4, session_spread=0.003):
    """A time as a machine would give it: sessions differ, launches differ, the head by `effect`."""
    noise = random.Random(f"{name} {seed}")

    def session(times=1.0):
        times *= log_normal(noise, session_spread)
        return tuple(times * log_normal(noise, spread) for _ in range(4))

    def pair():
        return log_normal(noise, spread), effect * log_normal(noise, spread)

    return Sampled(
        workload=name,
        metric=TIME,
        history=tuple(session() for _ in range(sessions)),
        head=session(effect),
        pairs=tuple(pair() for _ in range(PAIRS)),
    )


@st.composite
def realistic(draw, name):
    """Draw a workload with noise as machines make it; half of them have no pairs or no history."""
    found = a_workload(
        name, seed=draw(st.integers(0, 999)), effect=draw(effects), spread=draw(spreads)
    )
    return msgspec.structs.replace(
        found, **draw(st.sampled_from([{}, {}, {"pairs": ()}, {"history": (), "head": ()}]))
    )


@st.composite
def arbitrary(draw, name):
    """Draw a workload with any launches at all."""
    pairs = draw(st.lists(st.tuples(near, near), max_size=PAIRS))
    metric = draw(st.sampled_from([TIME, BYTES]))
    return Sampled(
        workload=name,
        metric=metric,
        history=draw(histories),
        head=draw(launches),
        pairs=tuple(pairs),
    )


files = st.integers(1, 4).flatmap(
    lambda count: st.tuples(*(realistic(f"w{i}") | arbitrary(f"w{i}") for i in range(count)))
)


def rows(workloads, **options):
    comparison = judge.judge(Samples(workloads=tuple(workloads)), base="b", head="h", **options)
    return {row.workload: row for row in comparison.rows}


def said(workloads):
    return {name: (row.verdict, row.code) for name, row in rows(workloads).items()}


def verdicts(workloads):
    return {name: row.verdict for name, row in rows(workloads).items()}


def ticks(workloads):
    return [getattr(row, "tick", None) for _, row in sorted(rows(workloads).items())]


def each_launch(sampled, change):
    """Change every launch; `change` gets a number and gives what stands in its place."""
    return msgspec.structs.replace(
        sampled,
        history=tuple(tuple(map(change, session)) for session in sampled.history),
        head=tuple(map(change, sampled.head)),
        pairs=tuple((change(base), change(head)) for base, head in sampled.pairs),
    )


def slower(sampled, factor):
    """Let every launch of the head take `factor` times as long: the noise stays the same."""
    return msgspec.structs.replace(
        sampled,
        head=tuple(factor * head for head in sampled.head),
        pairs=tuple((base, factor * head) for base, head in sampled.pairs),
    )


# --- the unit


@few
@given(files, st.lists(st.floats(1e-6, 1e6), min_size=4, max_size=4))
def test_no_unit_changes_a_verdict(workloads, units):
    """Each workload has its own factor, as if each were measured by another clock."""
    scaled = [
        each_launch(one, lambda value, unit=unit: unit * value)
        for one, unit in zip(workloads, units, strict=False)
    ]
    # 0.9 and 1.0 are round to a tenth, twice as much is, too: to half as large a share of them.
    assume(ticks(scaled) == ticks(workloads))

    assert said(scaled) == said(workloads)


def test_a_loss_of_just_the_margin_or_the_limit_gets_one_answer_in_every_unit():
    """Without noise only the last digit of a float lies between the two."""
    levels = [0.997, 1.0033, 1.00366, 0.9999]
    for loss, head in ((1.02, 1.0249), (1.01, 1.0249), (1.02, 1.0)):
        same = Sampled(
            workload="w0",
            metric=TIME,
            history=tuple((level,) * 4 for level in levels),
            head=(head * 1.0000213,) * 4,
            pairs=((1.0000117, loss * 1.0000117),) * PAIRS,
        )
        answers = {
            said([each_launch(same, lambda value, unit=unit: unit * value)])["w0"]
            for unit in (1.0, 1.5, 1.7, 2.0, 3.3, 1e-3, 7e5)
        }

        assert len(answers) == 1, loss


# --- base and head change places


@few
@given(files)
def test_times_that_become_their_inverse_turn_a_loss_into_a_gain(workloads):
    """The only difference between slower and faster is the sign, after any history."""
    inverse = [each_launch(one, lambda value: 1 / value) for one in workloads]
    # The inverse of a round number is not round.
    assume(not any((*ticks(workloads), *ticks(inverse))))

    for name, row in rows(inverse).items():
        other = rows(workloads)[name]
        assert proven(row.verdict) is mirrored(other.verdict)
        # Only what is worse by its history is named.
        assert row.code == other.code or {"worse_by_history"} & {
            row.code,
            other.code,
        }
        # Where pairs are unfit, the history speaks for a loss alone.
        assert "worse_by_history" in {row.code, other.code} or math.isclose(
            row.ratio * other.ratio, 1, rel_tol=1e-9
        )


# --- order


@few
@given(files, st.randoms(use_true_random=False))
def test_no_order_changes_an_answer(workloads, order):
    """Of workloads, of sessions, of their launches, of the head's, and of pairs within a look."""

    def shuffled(values):
        return tuple(order.sample(values, len(values)))

    mixed = [
        msgspec.structs.replace(
            one,
            history=shuffled([shuffled(session) for session in one.history]),
            head=shuffled(one.head),
            pairs=tuple(
                pair
                for first, end in itertools.pairwise((0, *CALM_LOOKS))
                for pair in shuffled(one.pairs[first:end])
            ),
        )
        for one in shuffled(workloads)
    ]

    assert rows(mixed) == rows(workloads)


# --- the size of a change


def is_slower_throughout(sampled):
    """Whether the head is slower at every look; only then is a larger change further away."""
    behind = [math.log(head / base) for base, head in sampled.pairs]
    history = [sum(map(math.log, session)) / len(session) for session in sampled.history]
    head = [math.log(value) for value in sampled.head]
    return all(math.fsum(behind[:look]) >= 0 for look in CALM_LOOKS[1:]) and (
        not history or math.fsum(head) / len(head) >= math.fsum(history) / len(history)
    )


@few
@given(
    files,
    st.lists(st.floats(1.0, 1.1), min_size=1, max_size=4).map(sorted),
)
def test_a_loss_that_grows_is_never_called_less(workloads, factors):
    first, *others = workloads
    assume(is_slower_throughout(first))

    losses = [[slower(first, factor), *others] for factor in factors]
    # A round factor can make numbers round, and then rounding may hide the larger loss.
    assume(not any(any(ticks(workloads)) for workloads in losses))

    found = [verdicts(workloads)["w0"] for workloads in losses]
    for smaller, larger in pairwise(found):
        if smaller in {Verdict.REGRESSED, Verdict.LIKELY_SLOWER}:
            assert larger is smaller
        if larger is Verdict.UNCHANGED:
            assert smaller is Verdict.UNCHANGED
        assert larger is not Verdict.IMPROVED


# --- steps, and launches that say nothing


@few
@given(files, st.lists(st.floats(0.9, 1.1), min_size=1, max_size=4))
def test_steps_count_as_their_median_would(workloads, steps):
    """However long a launch is, it is one number."""
    wide = [
        each_launch(one, lambda value: (value, *(value * s for s in steps))) for one in workloads
    ]
    narrow = [each_launch(one, statistics.median) for one in wide]
    assume(ticks(wide) == ticks(narrow))  # steps may show that a launch was not rounded

    assert rows(wide) == rows(narrow)


# --- neighbours


@few
@given(files, st.integers(1, 30), effects)
def test_more_suspects_never_make_an_alarm(workloads, count, effect):
    """They have no history, so the screen says of the others what it said before."""
    others = [
        msgspec.structs.replace(a_workload(f"more{i}", effect=effect), history=(), head=())
        for i in range(count)
    ]
    alone = rows(workloads)

    for name, row in rows([*workloads, *others]).items():
        before = alone[name].verdict if name in alone else None
        if before and row.verdict in MIRRORED:
            assert row.verdict is before
        elif before and row.verdict is Verdict.LIKELY_SLOWER:
            assert before in {Verdict.LIKELY_SLOWER, Verdict.REGRESSED}


@few
@given(files, st.integers(0, 5), st.integers(0, 5))
def test_a_count_says_nothing_of_its_neighbours(workloads, base, head):
    counted = Sampled(workload="counted", metric=COUNT, history=((base,),), head=(head,))

    found = rows([*workloads, counted])

    assert {name: row for name, row in found.items() if name != "counted"} == rows(workloads)


# --- what is called unchanged


@st.composite
def candidates(draw, name):
    """Draw what a run knows of a workload: a noisy metric, a limit, and runs before this one."""
    sampled = draw(realistic(name) | arbitrary(name))
    is_accepted = bool(sampled.history) and draw(st.integers(0, 3)) == 0
    pairs = () if is_accepted else sampled.pairs
    earlier = draw(st.sampled_from([(), (), (1,), (3,), (6,), (9, 4)]))
    has_earlier = sum(earlier) < len(pairs)
    return Candidate(
        workload=name,
        metric=draw(st.sampled_from([STEP_TIME, FIRST_STEP, HOST_RSS_PEAK, STEP_P95])),
        limit=Limit(
            relative=draw(st.sampled_from([0.005, 0.02, 0.05, 0.2])), gate=draw(st.booleans())
        ),
        history=History(current=list(sampled.history)) if sampled.history else None,
        head=sampled.head,
        pairs=pairs,
        earlier=earlier if has_earlier else (),
        said=draw(st.sampled_from([None, Verdict.UNCHANGED, Verdict.REGRESSED]))
        if has_earlier and earlier
        else None,
        tick=draw(st.sampled_from([0.0, 0.01])),
        obstacle=draw(st.sampled_from(["", "", "machine_moved"])),
        facts=choose({Fact.ACCEPTED: is_accepted})
        | draw(st.frozensets(st.sampled_from([Fact.DOES_MORE, Fact.TRIMMED, Fact.OTHER_PACKAGES]))),
    )


suites = st.integers(1, 4).flatmap(
    lambda count: st.tuples(*(candidates(f"w{i}") for i in range(count)))
)


@settings(few, max_examples=500)
@given(suites, st.sampled_from([None, 1, 5]))
def test_nothing_is_unchanged_of_which_the_same_evidence_says_that_it_has_changed(suite, check):
    """No interval of such a row lies beyond half the limit, on either side."""
    for judgement in changes.judge(suite, check=check):
        row = judgement.change
        if row is not None and row.verdict is Verdict.UNCHANGED and row.interval is not None:
            beyond = 1 + row.limit / 2 + 1e-9
            assert row.interval.low <= beyond
            assert 1 / row.interval.high <= beyond
