"""Which workloads a session leaves out, which it records, and in what order it launches them."""

import msgspec
import pytest

from ci_perf import session
from ci_perf.judging.earlier_checks import Before, Offered
from ci_perf.session import Against
from ci_perf.system import git
from tests.histories import in_turns, judged, pairs
from tests.programs import a_program, a_same_program, a_touched
from tests.repositories import Repository
from tests.runs import SLOW, a_measured, a_run
from tests.sessions import (
    BOOM,
    Launches,
    Recorder,
    Suspects,
    a_checkout,
    a_plan_at,
    a_result,
    some_checks,
)

ALONE = Before()


class Prover:
    """Knows what it was told of workloads; says of a record of the base what `by_record` says.

    `of_head` are records that hold for the head, by workload.
    """

    def __init__(self, known, by_record=None, *, of_head=None, may_record=True):
        self._known = known
        self._by_record = by_record or {}
        self._of_head = of_head or {}
        self.may_record = may_record
        self.kept = []

    def known(self, workload, _machine):
        return self._known.get(workload.id)

    def by_record(self, workload, _program):
        return self._by_record[workload.id]

    def of_head(self, workload, _machine):
        return self._of_head.get(workload.id)

    def keep(self, workload, _machine, program, root):
        self.kept.append((workload.id, root.name))
        return msgspec.structs.replace(program, conditions="d" * 16)


def recording(_side, task):
    """Leave a record where one is asked for, and the ordinary result elsewhere."""
    if not task.record:
        return None
    return msgspec.structs.replace(a_result(), program=a_program(task.workload.id, conditions=""))


@pytest.fixture
def sides(tmp_path):
    for side in ("head", "base"):
        folder = tmp_path / side / "workloads"
        folder.mkdir(parents=True)
        for name in ("a", "b", "c"):
            (folder / f"{name}.py").write_text("")
    return tmp_path


def measured(sides, launches, prover, *names, listener=None, is_against=True, before=ALONE, **more):
    judge = Suspects(lambda _run: ((), 0))
    against = Against(checkout=a_checkout(sides), budget_s=60, judge=judge, before=before)
    return session.measure(
        a_plan_at(sides / "head", *(names or "abc"), **more),
        launches,
        listener or Recorder(),
        device="cpu",
        lock_timeout_s=1,
        against=against if is_against else None,
        prover=prover,
        checks=some_checks(),
    )


def test_nothing_is_launched_where_every_workload_is_the_same_program(sides):
    launches, prover = Launches(), Prover({name: a_same_program(name) for name in "abc"})

    run = measured(sides, launches, prover)

    assert launches.turns == []
    assert [same.workload for same in run.same] == ["a", "b", "c"]
    assert (run.measured, run.failed, run.touched) == ((), (), ())
    against = run.interleaved  # what the head is the same as
    assert (against.ref, against.stopped, against.pairs) == ("main", "decided", 0)


def test_what_pairs_of_this_commit_have_proven_to_move_is_no_same_program(sides):
    head = Repository(sides / "head")
    head.ask("init", "--quiet")
    head.commit()
    first = in_turns(
        a_run(a_measured("a", *SLOW), commit=git.source(head.root).commit),
        pairs(2.0),
        workload="a",
    )
    offered = Offered(run=first, comparison=judged([], first), label="first.json")
    prover = Prover({name: a_same_program(name) for name in "abc"})

    run = measured(sides, Launches(), prover, before=Before(offered=[offered]))

    assert [(each.workload, each.code) for each in run.touched] == [("a", "obstacle")]
    assert [each.workload for each in run.measured] == ["a"]


def test_what_is_touched_is_measured_and_recorded_once_afterwards_for_as_many_steps(sides):
    launches = Launches(recording)
    prover = Prover({"a": a_same_program("a"), "b": a_touched("b"), "c": a_same_program("c")})

    run = measured(sides, launches, prover)

    assert launches.turns == [("head", "b"), ("head", "b")]
    assert [task.record for task in launches.tasks] == [False, True]
    timed = run.measured[0].processes[0].timed
    steps = run.measured[0].processes[0].warmup.steps + timed.steps_per_block * len(timed.block_s)
    assert launches.tasks[1].record_steps == steps
    assert [same.workload for same in run.same] == ["a", "c"]
    assert run.touched == (a_touched("b"),)
    (program,) = run.programs
    assert (program.workload, program.run, program.conditions) == ("b", run.id, "d" * 16)
    assert prover.kept == [("b", "head")]


def test_a_record_that_holds_for_the_head_spares_the_launch_that_would_make_one(sides):
    launches = Launches(recording)
    of_head = {"a": a_program("a", steps=10**6, run="an older one")}

    run = measured(sides, launches, Prover({"a": a_touched("a")}, of_head=of_head), "a")

    assert [task.record for task in launches.tasks] == [False]
    (program,) = run.programs
    assert program == msgspec.structs.replace(of_head["a"], run=run.id)


@pytest.mark.parametrize(
    ("of_head", "losses"),
    [
        (a_program("a", steps=1), [1.0, 1.0]),
        (a_program("a", steps=10**6), [1.0, 2.0]),
    ],
    ids=["of too few steps", "of a program whose numerics vary now"],
)
def test_a_record_that_tells_too_little_is_made_anew(sides, of_head, losses):
    left = iter([*losses, 1.0])

    def answers(_side, task):
        program = a_program(task.workload.id) if task.record else None
        return msgspec.structs.replace(a_result(losses=[next(left)]), program=program)

    launches = Launches(answers)
    prover = Prover({"a": a_touched("a")}, of_head={"a": of_head})

    measured(sides, launches, prover, "a", processes=2)

    assert [task.record for task in launches.tasks] == [False, False, True]


def test_a_base_of_which_nothing_is_known_is_recorded_before_anything_is_measured(sides):
    launches = Launches(recording)
    prover = Prover({"c": a_touched("c")}, {"a": a_same_program("a"), "b": a_touched("b")})
    heard = Recorder()

    run = measured(sides, launches, prover, listener=heard)

    asked = [(side, name, task.record) for (side, name), task in launches.noted()]
    assert asked[:2] == [("base", "a", True), ("base", "b", True)]
    assert asked[2:] == [
        ("head", "b", False),
        ("head", "c", False),
        ("head", "b", True),
        ("head", "c", True),
    ]
    assert all(task.foreign_root == str(sides / "head") for task in launches.of("base"))
    assert [same.workload for same in run.same] == ["a"]
    assert [program.workload for program in run.programs] == ["b", "c"]
    assert [note for note in heard.heard if note[0] == "recording"] == [
        ("recording", name) for name in ("a", "b", "b", "c")
    ]


def test_a_base_without_the_workload_file_is_not_launched(sides):
    (sides / "base/workloads/a.py").unlink()
    launches = Launches(recording)

    run = measured(sides, launches, Prover({}), "a")

    assert launches.turns == [("head", "a"), ("head", "a")]
    assert "the base has no such file" in run.touched[0].detail


@pytest.mark.parametrize("answer", [BOOM, a_result()])
def test_a_record_that_fails_means_that_the_workload_is_measured_and_the_run_says_why(
    sides, answer
):
    launches = Launches(lambda _side, task: answer if task.record else None)

    run = measured(sides, launches, Prover({}), "a")

    assert [measured.workload for measured in run.measured] == ["a"]
    assert run.touched[0].code == "not_recorded"
    assert run.failed == run.programs == ()


def test_without_records_what_is_not_known_is_measured(sides):
    launches = Launches(recording)
    touched = a_touched("a", code="not_recorded")

    run = measured(sides, launches, Prover({"a": touched}, may_record=False), "a")

    assert [task.record for task in launches.tasks] == [False]
    assert run.touched == (touched,)


def test_a_failed_workload_is_not_recorded(sides):
    launches = Launches(lambda _side, _task: BOOM)

    run = measured(sides, launches, Prover({"a": a_touched("a")}), "a", is_against=False)

    assert len(launches.turns) == 1
    assert run.failed


@pytest.mark.parametrize(
    ("taken", "words"),
    [
        ({"losses": [1.0], "varies": "atomics"}, "says that its numerics vary: atomics"),
        ({"losses": [2.0]}, "vary from launch to launch"),
        ({"losses": [1.0]}, ""),
        ({}, ""),
    ],
)
def test_a_program_that_computes_other_numbers_each_time_is_no_proof(sides, taken, words):
    def answers(_side, task):
        result = a_result(**(taken if task.record else {"losses": [1.0]}))
        program = a_program(task.workload.id) if task.record else None
        return msgspec.structs.replace(result, program=program)

    run = measured(sides, Launches(answers), Prover({"a": a_touched("a")}), "a")

    (program,) = run.programs
    assert words in "".join(program.obstacles)
    assert bool(program.obstacles) == bool(words)
