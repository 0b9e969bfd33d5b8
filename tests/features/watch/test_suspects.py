"""What the history of a machine suspects."""

import math

import msgspec
import pytest

from ci_perf.features.watch.suspects import (
    find_acceptance,
    find_better,
    find_steps,
    find_suspects,
)
from ci_perf.judging import summarise
from ci_perf.model.baseline import MAX_SESSIONS
from ci_perf.model.comparison import Verdict
from ci_perf.model.suite import Limit, Limits
from tests.branches import a_committed, a_recorded
from tests.comparisons import a_change, a_comparison
from tests.runs import a_measured, a_run
from tests.watches import a_sha

LOW, HIGH = 0.0, 1.0


@pytest.mark.parametrize(
    ("values", "places"),
    [
        ([LOW, LOW, LOW, LOW], []),
        ([LOW, LOW, LOW, LOW, HIGH], [3, 0]),
        ([LOW, LOW, HIGH, HIGH, HIGH], [1, 0]),
        ([HIGH, HIGH, LOW, LOW], []),
        ([LOW, HIGH, HIGH, LOW, LOW, LOW, LOW, LOW, HIGH], [7, 4, 0]),
        ([LOW, HIGH], [0]),
    ],
    ids=["calm", "tonight", "two nights ago", "faster", "again", "one session"],
)
def test_the_newest_better_session_comes_first_and_the_oldest_last(values, places):
    assert find_better(values, 0.5) == places


NOISE = (0.0, 0.003, -0.002, 0.001, -0.003, 0.002)


@pytest.mark.parametrize(
    ("levels", "told"),
    [
        ([*NOISE, *(0.03 + each for each in NOISE)], [6]),
        ([*NOISE, *(0.03 + each for each in NOISE), 0.07, 0.071], [6, 12]),
        ([*NOISE, 0.03, *NOISE], []),
        ([*NOISE, 0.03], []),
        ([-0.03, *NOISE], []),
        ([*NOISE, *(-0.03 + each for each in NOISE)], []),
        ([0.01 * at for at in range(12)], []),
        ([0.0, 0.0, 0.0, 0.05, 0.05], []),
    ],
    ids=[
        "one",
        "two",
        "one bad session",
        "a bad HEAD",
        "a lucky first",
        "better",
        "all alike",
        "too few",
    ],
)
def test_a_step_stands_out_of_the_noise_of_its_sessions(levels, told):
    steps = list(find_steps([f"c{at}" for at in range(len(levels))], levels, [0] * len(levels)))

    assert [(each.good, each.bad) for each in steps] == [(f"c{at - 1}", f"c{at}") for at in told]
    assert all(1.02 < each.change < 1.06 for each in steps)


def test_a_step_with_other_software_of_the_machine_is_of_no_commit():
    levels = [*NOISE, *(0.03 + each for each in NOISE)]

    assert not [*find_steps([f"c{at}" for at in range(12)], levels, [1] * 6 + [2] * 6)]


def test_a_suspect_has_the_good_commits_and_the_steps_of_its_history():
    levels = [*NOISE, *(0.03 + each for each in NOISE)]
    sessions = [
        msgspec.structs.replace(each, source=msgspec.structs.replace(each.source, commit=a_sha(at)))
        for at, level in enumerate(levels)
        for each in [a_recorded(f"r{at}", 1e-3 * math.exp(level))]
    ]
    head = summarise.run(a_run(a_measured("w", 1.1e-3), commit=a_sha(12)), label="")

    (suspect,) = find_suspects(
        [a_committed(*sessions)],
        head,
        a_comparison(a_change("w", Verdict.UNCHANGED)),
        Limits(default={"step_time_s": Limit(relative=0.05)}),
        lambda _baseline, session: session.source.commit,
    )

    assert (suspect.goods[0], suspect.goods[-1]) == (a_sha(11), a_sha(0))
    assert [(each.good, each.bad) for each in suspect.steps] == [(a_sha(5), a_sha(6))]


def test_one_lucky_session_is_not_the_last_good_one():
    assert find_better([LOW, LOW, HIGH, HIGH, 0.4, HIGH], 0.5)[0] == 1


FIRST = a_committed(a_recorded("r1"))
MOVED = {"step_time_s": 1}
NIGHT = a_recorded("r3", epochs=MOVED)
LATER = msgspec.structs.replace(
    a_recorded("r4", epochs=MOVED, reason="Not yet"), until={"step_time_s": "2027-01-31"}
)
ACCEPTED = a_recorded("r2", epochs=MOVED, reason="A better loss")


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (FIRST, a_committed(a_recorded("r1"), a_recorded("r2")), None),
        (FIRST, a_committed(a_recorded("r1"), ACCEPTED), "A better loss"),
        (FIRST, a_committed(a_recorded("r1"), ACCEPTED, NIGHT), "A better loss"),
        (FIRST, a_committed(a_recorded("r1"), ACCEPTED, NIGHT, LATER), "Not yet"),
        (FIRST, a_committed(a_recorded("r1"), a_recorded("r2", epochs=MOVED)), None),
        (FIRST, a_committed(a_recorded("r2", reason="Begin again")), "Begin again"),
        (FIRST, a_committed(*(a_recorded(f"n{at}") for at in range(MAX_SESSIONS))), None),
        (None, FIRST, None),
        (None, a_committed(a_recorded("r1"), ACCEPTED), "A better loss"),
    ],
    ids=[
        "appended",
        "another epoch",
        "a night after it",
        "another day",
        "an improvement",
        "anew",
        "nights",
        "a file that came later",
        "accepted later",
    ],
)
def test_only_what_somebody_accepts_is_accepted(before, after, reason):
    accepted = find_acceptance(before, after, "step_time_s", lambda _session: True)

    assert (accepted and accepted.reason) == reason


def test_a_session_without_the_culprit_does_not_accept_it():
    after = a_committed(a_recorded("r1"), ACCEPTED)

    assert find_acceptance(FIRST, after, "step_time_s", lambda each: each.run != "r2") is None
