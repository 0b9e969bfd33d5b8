"""A night of a watch, whose pairs and searches answer as they were recorded."""

from pathlib import Path

import msgspec
import pytest

from benchmarks import watch_nights
from ci_perf.errors import CiPerfError
from ci_perf.features.watch.branch_line import BranchLine
from ci_perf.features.watch.night import BudgetSpentError, Night, Searched
from ci_perf.features.watch.sessions import PairsAnswer
from ci_perf.features.watch.suspects import HistoryStep, Suspect
from ci_perf.model.commit import Commit
from ci_perf.model.comparison import Interval, Verdict
from ci_perf.model.explanation import AuthorFunction, Cause, Explanation
from ci_perf.model.watch import LossCause, Since, Suspicion, Unanswered, WatchedRepository
from tests.comparisons import a_change
from tests.watches import DAY, a_creep, a_culprit, a_row, a_sha, a_watch

LAST, CULPRIT = 20, 7
STEP = "step_time_s"


WHY = Explanation(
    causes=(
        Cause(
            kind="more",
            place=AuthorFunction(file="model.py", function="Model.forward", line=3),
            calls_base=8.0,
            calls_head=16.0,
        ),
    ),
    pairs=3,
)


class Line(BranchLine):
    """A branch from a_sha(0) to a_sha(20), without a repository."""

    def find_revert(self, commit):
        return a_sha(LAST) if commit == a_sha(CULPRIT) else ""


class World:
    """Answers from the step time of each commit, and notes what was asked."""

    def __init__(self, levels, *, open_for=(), sessions=100):
        self.levels, self.open_for, self.left, self.asked = levels, open_for, sessions, []
        self.sessions = sessions

    def level(self, commit):
        return self.levels(int(commit, 16))

    def measure_pairs(self, commit, base, workloads, *, explains=False, keeps=0.0):
        self._spend("pairs", commit, base, keeps=keeps)
        ratio = self.level(commit) / self.level(base)
        return PairsAnswer(
            changes={
                (name, STEP): a_change(
                    name,
                    verdict,
                    ratio=ratio,
                    limit=0.05,
                    pairs=9,
                    explanation=WHY if explains else None,
                )
                for name in workloads
                if name not in self.open_for
                for verdict in [Verdict.REGRESSED if ratio > 1.05 else Verdict.UNCHANGED]
            },
            failures=dict.fromkeys(self.open_for, "out of memory"),
        )

    def search(self, good, bad, key):
        self._spend("search", good, bad)
        first, last = int(good, 16), int(bad, 16)
        if self.levels(last) / self.levels(first) <= 1.05:
            return Searched()
        half = (self.levels(first) * self.levels(last)) ** 0.5
        at = next(n for n in range(first + 1, last + 1) if self.levels(n) > half)
        change = a_change(key[0], Verdict.REGRESSED, ratio=self.levels(last) / self.levels(first))
        return Searched(left=(a_sha(at),), change=change)

    def _spend(self, *asked, keeps=0.0):
        self.asked.append(asked)
        if self.left <= keeps * self.sessions:
            raise BudgetSpentError
        self.left -= 1


def step_at(*places, size=1.1):
    return lambda number: size ** sum(number >= at for at in places)


def a_suspect(workload="a", *goods, steps=()):
    return Suspect(workload=workload, metric=STEP, goods=goods or (a_sha(2), a_sha(0)), steps=steps)


def spend_night(
    world, *suspects, find_accepted=lambda _culprit: None, keep=None, removed=(), **known
):
    commits = tuple(map(a_sha, range(LAST + 1)))
    places = {commit: at for at, commit in enumerate(commits)}
    repository = WatchedRepository(root=a_sha(0))
    nothing = {"culprits": (), "creeps": (), "suspicions": (), "no_answer": ()}
    night = Night(
        known=a_watch(**{**nothing, **known}),
        line=Line(
            top=Path(),
            repository=repository,
            commits=commits,
            places=places,
            described={
                each: Commit(id=each, author="Ada", title="", date=f"2026-10-{1 + at:02}")
                for each, at in places.items()
            },
        ),
        launcher=world,
        today=DAY,
        find_accepted=find_accepted,
        keep=keep or (lambda _known: None),
        find_owner={"w0": "@org/perf"}.get,
        is_removed=lambda name: name in removed,
    )
    return night.go(suspects, {})


def test_workloads_of_one_commit_are_one_culprit_by_one_search():
    world = World(step_at(CULPRIT))
    names = [f"w{number}" for number in range(28)]

    known = spend_night(world, *map(a_suspect, names))

    (culprit,) = known.culprits
    assert culprit.commit == a_sha(CULPRIT)
    assert sorted(row.workload for row in culprit.rows) == sorted(names)
    assert (culprit.window.good, culprit.window.bad) == (a_sha(2), a_sha(LAST))
    assert [asked[0] for asked in world.asked] == ["pairs", "search", "pairs"]
    assert culprit.owner == "@org/perf"
    assert culprit.cause == LossCause(
        text="8 → 16 calls", function="Model.forward", file="model.py"
    )
    assert known.complete


def test_where_pairs_agree_the_machine_moved_and_nobody_is_blamed():
    known = spend_night(World(step_at()), a_suspect())

    assert known.culprits == ()
    assert [each.answer for each in known.suspicions] == ["machine"]


def test_two_losses_of_a_window_are_two_culprits():
    known = spend_night(World(step_at(5, 12, size=1.2)), a_suspect())

    assert {each.commit for each in known.culprits} == {a_sha(5), a_sha(12)}


def test_small_steps_are_a_creep_with_the_step_that_is_known():
    known = spend_night(World(lambda number: 1.02**number), a_suspect())

    (creep,) = known.creeps
    assert known.culprits == ()
    assert (creep.since.commit, creep.since.day) == (a_sha(2), "2026-10-03")
    assert creep.change == pytest.approx(1.02**18)
    assert [round(each.change, 3) for each in creep.largest] == [1.02]


def test_the_largest_steps_of_a_creep_are_those_of_the_history_after_its_first_commit():
    steps = [(1, 2, 1.04), (3, 4, 1.02), (5, 9, 1.03), (10, 12, 1.025), (15, 16, 1.01)]
    seen = [HistoryStep(a_sha(good), a_sha(bad), change) for good, bad, change in steps]
    world = World(lambda number: 1.01**number)

    begun = spend_night(world, a_suspect(steps=seen))
    later = spend_night(world, creeps=begun.creeps)

    for known in (begun, later):
        (creep,) = known.creeps
        assert [(each.commit, each.change, each.commits) for each in creep.largest] == [
            (a_sha(9), 1.03, 4),
            (a_sha(12), 1.025, 2),
            (a_sha(4), 1.02, 1),
        ]


def test_a_step_that_pairs_do_not_tell_from_none_is_not_named():
    class Unsure(World):
        def measure_pairs(self, *asked, **more):
            answer = super().measure_pairs(*asked, **more)
            changes = {
                key: msgspec.structs.replace(each, interval=Interval(low=0.99, high=9.0))
                for key, each in answer.changes.items()
            }
            return PairsAnswer(changes=changes)

    known = spend_night(Unsure(lambda number: 1.02**number), a_suspect())

    assert [each.largest for each in known.creeps] == [()]


def test_a_search_goes_on_with_the_commits_that_are_left():
    kept = []
    spent = spend_night(World(step_at(CULPRIT), sessions=1), a_suspect(), keep=kept.append)
    assert (spent.complete, kept[-1]) == (False, spent)
    left = tuple(map(a_sha, range(5, 9)))
    begun = Suspicion(
        workload="a", metric=STEP, good=a_sha(2), bad=a_sha(18), left=left, answer="code"
    )
    world = World(step_at(CULPRIT))

    known = spend_night(world, suspicions=(begun,))

    assert world.asked[0] == ("search", a_sha(4), a_sha(8))
    assert [each.commit for each in known.culprits] == [a_sha(CULPRIT)]
    assert known.culprits[0].window.good == a_sha(2)


def test_a_night_that_somebody_interrupts_is_not_complete():
    class Interrupted(World):
        def search(self, *_asked):
            raise KeyboardInterrupt

    kept = []
    with pytest.raises(KeyboardInterrupt):
        spend_night(Interrupted(step_at(CULPRIT)), a_suspect(), keep=kept.append)

    assert (kept[-1].complete, len(kept[-1].suspicions[0].left)) == (False, LAST - 2)


def test_a_search_that_ended_at_an_innocent_commit_begins_anew():
    innocent = Suspicion(
        workload="a",
        metric=STEP,
        good=a_sha(2),
        bad=a_sha(18),
        left=(a_sha(CULPRIT + 1),),
        answer="code",
    )
    world = World(step_at(CULPRIT))

    known = spend_night(world, a_suspect(), suspicions=(innocent,))

    assert (known.culprits, known.suspicions) == ((), ())
    assert ["agree" in each.why for each in known.no_answer] == [True]
    known = spend_night(world, a_suspect(), suspicions=known.suspicions)
    assert [each.commit for each in known.culprits] == [a_sha(CULPRIT)]


@pytest.mark.parametrize(
    ("left", "sessions"), [((4, 5, 6), 2), ((11, 12, 13), 2), ((), 3)], ids=["first", "last", "all"]
)
def test_a_budget_that_ends_between_two_losses_of_a_window_loses_none(left, sessions):
    begun = Suspicion(
        workload="a",
        metric=STEP,
        good=a_sha(2),
        bad=a_sha(LAST),
        left=tuple(map(a_sha, left)),
        answer="code",
    )
    levels = step_at(5, 12, size=1.2)

    known = spend_night(
        World(levels, sessions=sessions), a_suspect(), suspicions=(begun,) if left else ()
    )
    assert len(known.culprits) == 1
    for _ in range(2):
        known = spend_night(
            World(levels), a_suspect(), culprits=known.culprits, suspicions=known.suspicions
        )

    assert {each.commit for each in known.culprits} == {a_sha(5), a_sha(12)}


def test_a_row_of_a_known_culprit_that_fails_tonight_ends_no_night():
    begun = [
        Suspicion(
            workload=name, metric=STEP, good=a_sha(6), bad=a_sha(7), left=(a_sha(7),), answer="code"
        )
        for name in ("a", "b")
    ]
    mended = a_culprit(CULPRIT, "a", "b", state="repaired", good_again=a_sha(8))
    world = World(step_at(CULPRIT), open_for=("b",))

    known = spend_night(world, culprits=(mended,), suspicions=tuple(begun))

    assert [each.state for each in known.culprits] == ["open"]
    assert [each.why for each in known.no_answer] == ["out of memory"]


def test_a_commit_whose_own_suite_gates_nothing_is_a_culprit_with_its_rows():
    class Ungated(World):
        def measure_pairs(self, *asked, **more):
            answer = super().measure_pairs(*asked, **more)
            changes = {
                key: msgspec.structs.replace(each, gate=False)
                for key, each in answer.changes.items()
            }
            return PairsAnswer(changes=changes)

    known = spend_night(Ungated(step_at(CULPRIT)), a_suspect(), a_suspect("b"))

    assert [len(each.rows) for each in known.culprits] == [2]


def test_the_one_commit_that_is_left_beside_a_culprit_needs_no_answer():
    begun = Suspicion(
        workload="a", metric=STEP, good=a_sha(5), bad=a_sha(7), left=(a_sha(7),), answer="code"
    )

    known = spend_night(World(step_at(CULPRIT)), a_suspect(), suspicions=(begun,))

    assert [each.commit for each in known.culprits] == [a_sha(CULPRIT)]
    assert known.no_answer == ()


def test_a_loss_that_a_search_does_not_see_is_asked_again_the_next_night():
    class Blind(World):
        def search(self, *_asked):
            return Searched()

    known = spend_night(Blind(step_at(CULPRIT)), a_suspect("a", a_sha(2)))

    assert (known.culprits, known.suspicions) == ((), ())
    known = spend_night(
        World(step_at(CULPRIT)), a_suspect("a", a_sha(2)), suspicions=known.suspicions
    )
    assert [each.commit for each in known.culprits] == [a_sha(CULPRIT)]


def test_commits_that_the_branch_lost_are_not_searched():
    gone = Suspicion(
        workload="a", metric=STEP, good=a_sha(2), bad="f" * 40, left=("e" * 40,), answer="code"
    )
    world = World(step_at())

    known = spend_night(world, suspicions=(gone,))

    assert (world.asked, known.suspicions) == ([], ())


@pytest.mark.parametrize(
    ("levels", "open_for", "state", "reason"),
    [
        (step_at(CULPRIT), (), "open", ""),
        (step_at(), (), "repaired", "agree, reverted by"),
        (step_at(), ("a",), "open", ""),
    ],
    ids=["still worse", "mended", "a night without an answer"],
)
def test_only_pairs_that_agree_close_a_culprit(levels, open_for, state, reason):
    before = a_culprit(CULPRIT, checked="2026-11-20")

    known = spend_night(World(levels, open_for=open_for), culprits=(before,))

    (culprit,) = known.culprits
    assert (culprit.state, reason in culprit.reason) == (state, True)
    assert culprit.checked == ("2026-11-20" if open_for else DAY)
    assert [each.why for each in known.no_answer] == ["out of memory"] * bool(open_for)


def test_an_open_culprit_is_not_searched_again_and_a_mended_one_is_not_blamed_again():
    mended = a_culprit(4, state="repaired", good_again=a_sha(6), checked="2026-11-20")

    def levels(number):
        return 1.2 if number in {4, 5} or number >= CULPRIT + 3 else 1.0

    known = spend_night(World(levels), a_suspect("a", a_sha(2), a_sha(0)), culprits=(mended,))
    assert {each.commit: each.state for each in known.culprits} == {
        a_sha(4): "repaired",
        a_sha(10): "open",
    }
    again = World(levels)
    known = spend_night(again, a_suspect(), culprits=known.culprits)
    assert "search" not in {asked[0] for asked in again.asked}
    assert len(known.culprits) == 2


def test_a_culprit_that_waited_longest_is_looked_at_first():
    waiting = a_culprit(12, checked="2026-11-20")
    world = World(step_at(CULPRIT, 12), sessions=1)

    known = spend_night(world, culprits=(a_culprit(CULPRIT), waiting))

    assert [each.checked for each in known.culprits] == [DAY, DAY]
    assert world.asked[0] == ("pairs", a_sha(LAST), a_sha(11))


def test_many_open_commits_leave_half_of_a_budget_to_the_search_and_all_get_their_turn():
    before = tuple(a_culprit(at, "b", checked="2026-11-01") for at in range(1, CULPRIT))
    levels = step_at(CULPRIT)

    known = spend_night(World(levels, sessions=6), a_suspect(), culprits=before)
    assert [each.commit for each in known.culprits if each.checked == DAY] == [
        *map(a_sha, (1, 2, 3, CULPRIT))
    ]
    assert not known.complete

    known = spend_night(World(levels, sessions=6), a_suspect("c"), culprits=known.culprits)
    assert {each.checked for each in known.culprits} == {DAY}
    assert [len(each.rows) for each in known.culprits][-1] == 2


def test_an_open_commit_that_waits_for_the_search_keeps_what_that_adds_to_it():
    before = [a_culprit(at, "b", checked="2026-11-01") for at in (3, 4, 5, 6, CULPRIT)]
    world = World(step_at(CULPRIT), sessions=8)

    known = spend_night(world, a_suspect(), culprits=tuple(before))

    assert world.asked[-1] == ("pairs", a_sha(LAST), a_sha(CULPRIT - 1))
    assert {row.workload for row in known.culprits[-1].rows} == {"a", "b"}


def test_a_commit_that_gave_no_answer_lets_others_be_asked_first_the_next_night():
    silent, other = a_culprit(9, checked="2026-11-01"), a_culprit(12, "b", checked="2026-11-02")
    world = World(step_at(9, 12), sessions=1)
    why = (Unanswered(workload="a", why="the budget ended before"),)

    known = spend_night(world, culprits=(silent, other), no_answer=why)

    assert [each.checked for each in known.culprits] == ["2026-11-01", DAY]


def test_pairs_that_half_of_a_budget_has_cut_off_are_launched_again_after_the_search():
    class Slow(World):
        def measure_pairs(self, *asked, keeps=0.0, **more):
            answer = super().measure_pairs(*asked, keeps=keeps, **more)
            return PairsAnswer(is_late=True) if keeps else answer

    before = a_culprit(12, "b", checked="2026-11-01")

    known = spend_night(Slow(step_at(12)), a_suspect(), culprits=(before,))

    assert [each.checked for each in known.culprits] == [DAY]
    assert (known.complete, known.no_answer) == (True, ())


def test_a_loss_is_open_again_after_its_day_without_time_for_pairs():
    accepted = a_culprit(CULPRIT, state="accepted", until="2026-11-28", reason="a better loss")

    known = spend_night(World(step_at(CULPRIT), sessions=0), culprits=(accepted,))

    assert [each.state for each in known.culprits] == ["open"]


def test_a_parent_that_the_branch_lost_changes_no_state():
    lost = a_culprit(CULPRIT, parent="f" * 40, checked="2026-11-20")

    known = spend_night(World(step_at()), culprits=(lost,))

    assert known.culprits[0].state == "open"
    assert "no longer in the history" in known.culprits[0].reason


def test_an_accepted_loss_is_open_again_after_its_day():
    accepted = a_culprit(CULPRIT, state="accepted", until="2026-11-28", reason="a better loss")
    world = World(step_at(CULPRIT))

    over = spend_night(
        world, culprits=(accepted,), find_accepted=lambda _culprit: ("a better loss", "2026-11-28")
    )
    still = spend_night(
        world,
        culprits=(a_culprit(CULPRIT),),
        find_accepted=lambda _culprit: ("a better loss", None),
    )

    assert (over.culprits[0].state, still.culprits[0].state) == ("open", "accepted")
    assert "until 2026-11-28" in over.culprits[0].reason
    assert still.culprits[0].reason == "a better loss"


def test_a_creep_that_a_baseline_accepts_is_closed_until_its_day():
    def find_accepted(_creep):
        return "a better loss", "2026-11-29"

    closed = spend_night(World(step_at()), creeps=(a_creep(),), find_accepted=find_accepted)
    (creep,) = closed.creeps
    assert (creep.state, creep.reason, creep.until) == ("accepted", "a better loss", "2026-11-29")

    over = msgspec.structs.replace(creep, until="2026-11-28")
    world = World(lambda number: 1.02**number)
    (again,) = spend_night(world, creeps=(over,)).creeps
    assert (again.state, again.reason) == ("open", "the loss was accepted until 2026-11-28")
    assert again.change > 1.3, "its pairs were asked"


@pytest.mark.parametrize("loss", [a_culprit(CULPRIT), a_creep()], ids=["culprit", "creep"])
def test_a_baseline_that_nobody_can_read_ends_no_night(loss):
    def find_accepted(_loss):
        raise CiPerfError("a.json: schema_version 0")

    kind = "creeps" if loss == a_creep() else "culprits"

    class Spent(World):
        def measure_pairs(self, *_asked, **_more):
            raise BudgetSpentError

    known = spend_night(Spent(step_at()), find_accepted=find_accepted, **{kind: (loss,)})

    assert getattr(known, kind) == (loss,)
    assert known.no_answer == (Unanswered(workload="a", why="a.json: schema_version 0"),)


@pytest.mark.parametrize(("level", "state"), [(1.0, "repaired"), (1.1, "open")])
def test_a_workload_that_was_removed_keeps_no_culprit_open(level, state):
    world = World(lambda number: level if number >= CULPRIT else 1.0, open_for=("gone",))
    other = a_culprit(9, "gone")
    search = Suspicion(workload="gone", metric=STEP, good=a_sha(2), bad=a_sha(9), left=(a_sha(9),))

    known = spend_night(
        world,
        culprits=(a_culprit(CULPRIT, "a", "gone"), other),
        creeps=(a_creep(workload="gone"),),
        suspicions=(search,),
        removed=("gone",),
    )

    both, alone = known.culprits
    assert both.state == state
    assert [(each.state, each.reason) for each in (alone, *known.creeps)] == 2 * [
        ("accepted", "gone: no longer in the suite")
    ]
    assert (world.asked, known.suspicions) == ([("pairs", a_sha(LAST), a_sha(CULPRIT - 1))], ())


def test_a_creep_whose_first_commit_the_branch_lost_says_so_and_stays_open():
    lost = a_creep(since=Since(commit="f" * 40, day=DAY))

    (creep,) = spend_night(World(step_at()), creeps=(lost,)).creeps

    assert creep.state == "open"
    assert creep.reason.startswith("ffffffffffff, before it, is no longer in the history")


def test_a_culprit_stays_for_thirty_days_after_it_was_mended():
    days = {"2026-10-20": 3, "2026-11-10": 4}
    closed = [a_culprit(at, state="repaired", checked=day) for day, at in days.items()]

    known = spend_night(World(step_at()), culprits=tuple(closed))

    assert [each.commit for each in known.culprits] == [a_sha(4)]


def test_a_creep_ends_where_pairs_agree():
    known = spend_night(World(step_at()), creeps=(a_creep(),))

    assert [each.state for each in known.creeps] == ["repaired"]


def test_a_creep_that_goes_on_is_still_compared_with_the_commit_where_it_began():
    known = spend_night(
        World(lambda number: 1.02**number), a_suspect("a", a_sha(9)), creeps=(a_creep(),)
    )

    (creep,) = known.creeps
    assert creep.since == a_creep().since
    assert creep.change == pytest.approx(1.02**19)
    assert [each.left for each in known.suspicions] == [()]


def test_a_creep_that_was_mended_tonight_explains_no_other_suspicion():
    known = spend_night(World(step_at()), a_suspect(), creeps=(a_creep(),))

    assert [each.state for each in known.creeps] == ["repaired"]
    assert [each.answer for each in known.suspicions] == ["machine"]


def test_a_mended_creep_stays_known_because_its_issue_may_be_open_still():
    world = World(step_at())
    mended = a_creep(state="repaired")

    known = spend_night(world, creeps=(mended,))

    assert (known.creeps, world.asked) == ((mended,), [])


def test_a_row_of_another_metric_is_not_mended_by_the_time():
    rows = (a_row("a"), a_row("a", metric="peak_allocated_bytes"))

    known = spend_night(World(step_at()), culprits=(a_culprit(CULPRIT, rows=rows),))

    assert known.culprits[0].state == "open"


@pytest.mark.parametrize("machine", sorted(watch_nights.MACHINES))
def test_simulated_losses_are_found_within_two_nights_and_nobody_else_is_blamed(machine):
    ended = watch_nights.simulate(280, watch_nights.MACHINES[machine], 2)

    assert len(ended.planted) == 40
    assert ended.in_time >= 0.95
    assert ended.innocent == 0
