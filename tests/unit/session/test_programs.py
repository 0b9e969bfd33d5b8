"""Which workloads a session leaves out, which it records, and in what order it launches them."""

import msgspec
import pytest

from ci_perf.judging.earlier_checks import Before, Offered
from ci_perf.model.program import join_programs
from ci_perf.session import Against
from ci_perf.system import git
from tests.histories import in_turns, judged, pairs
from tests.programs import a_program, a_same_program, a_touched
from tests.repositories import Repository
from tests.runs import SLOW, a_gpu_evidence, a_measured, a_run, an_evidence
from tests.sessions import (
    BOOM,
    Launches,
    Recorder,
    Suspects,
    a_checkout,
    a_look,
    a_plan_at,
    a_result,
    measure_with,
)

ALONE = Before()


class Records:
    """Knows what it was told of workloads; says of a record of the base what `compare` says."""

    def __init__(self, known, compare=None):
        self._known = known
        self._compare = compare or {}
        self.kept = []

    def find_answer(self, workload, _machine):
        return self._known.get(workload.id) or a_touched(workload.id, code="not_recorded")

    def compare(self, workload, _program):
        return self._compare[workload.id]

    def complete(self, workload, _machine, programs, root):
        self.kept.append((workload.id, root.name))
        return msgspec.structs.replace(join_programs(programs), conditions="d" * 16)


def recording(_side, task):
    """Leave a record beside the ordinary result."""
    return msgspec.structs.replace(a_result(), program=a_program(task.workload.id, conditions=""))


@pytest.fixture
def sides(tmp_path):
    for side in ("head", "base"):
        folder = tmp_path / side / "workloads"
        folder.mkdir(parents=True)
        for name in ("a", "b", "c"):
            (folder / f"{name}.py").write_text("")
    return tmp_path


def measured(
    sides,
    launches,
    records,
    *names,
    listener=None,
    is_against=True,
    before=ALONE,
    judge=None,
    **more,
):
    judge = judge or Suspects(lambda _run: ((), 0))
    against = Against(checkout=a_checkout(sides), budget_s=60, judge=judge, before=before)
    return measure_with(
        launches,
        a_plan_at(sides / "head", *(names or "abc"), **more),
        listener=listener,
        against=against if is_against else None,
        records=records,
    )


def test_nothing_is_launched_where_every_workload_is_the_same_program(sides):
    launches, records = Launches(), Records({name: a_same_program(name) for name in "abc"})

    run = measured(sides, launches, records)

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
    records = Records({name: a_same_program(name) for name in "abc"})

    run = measured(sides, Launches(), records, before=Before(offered=[offered]))

    assert [(each.workload, each.code) for each in run.touched] == [("a", "obstacle")]
    assert [each.workload for each in run.measured] == ["a"]


def test_the_launches_that_are_timed_make_the_record(sides):
    launches = Launches(recording)
    records = Records({"a": a_same_program("a"), "b": a_touched("b"), "c": a_same_program("c")})

    run = measured(sides, launches, records, processes=3)

    assert launches.turns == [("head", "b")] * 3
    assert [same.workload for same in run.same] == ["a", "c"]
    assert run.touched == (a_touched("b"),)
    (program,) = run.programs
    assert (program.workload, program.run, program.conditions) == ("b", run.id, "d" * 16)
    assert records.kept == [("b", "head")]


class Watched(Launches):
    """Launches on a GPU, at which it looks: noted among the turns."""

    def describe(self, *asked, **commands):
        return msgspec.structs.replace(super().describe(*asked, **commands), gpus=("GPU-a",))

    def look(self, *_asked):
        self.turns.append("look")
        return a_look()


def test_what_a_launch_that_records_shows_of_the_machine_stays_known(sides):
    busy = a_result(evidence=an_evidence(cpu_pressure=0.9))

    run = measured(sides, Launches(lambda side, _: busy if side == "base" else None), Records({}))

    assert [(each.code, each.workload) for each in run.validity.reasons] == [
        ("host_pressure", name) for name in "abc"
    ]


def test_nothing_is_launched_on_a_gpu_that_a_launch_that_records_has_lost(sides):
    evidence = an_evidence(a_gpu_evidence(lost="GPU is lost"))
    launches = Launches(lambda *_: msgspec.structs.replace(BOOM, evidence=evidence))

    run = measured(sides, launches, Records({}))

    assert launches.turns == [("base", "a")]
    assert [reason.code for reason in run.validity.reasons] == ["gpu_lost"]
    assert {failed.reason for failed in run.failed} == {"not launched: a GPU was lost"}


def test_gpus_are_looked_at_after_a_launch_that_records_has_failed(sides):
    launches = Watched(lambda side, _: BOOM if side == "base" else None, device="cuda:0")

    measured(sides, launches, Records({}), "a")

    assert launches.turns == ["look", ("base", "a"), "look", ("head", "a")]


def test_a_base_of_which_no_record_is_known_is_launched_once_before_anything_is_measured(sides):
    launches = Launches(recording)
    records = Records({"c": a_touched("c")}, {"a": a_same_program("a"), "b": a_touched("b")})
    heard = Recorder()

    run = measured(sides, launches, records, listener=heard)

    assert launches.turns == [("base", "a"), ("base", "b"), ("head", "b"), ("head", "c")]
    assert all(task.foreign_root == str(sides / "head") for task in launches.of("base"))
    assert [same.workload for same in run.same] == ["a"]
    assert [program.workload for program in run.programs] == ["b", "c"]
    assert records.kept == [("a", "base"), ("b", "base"), ("b", "head"), ("c", "head")]
    assert [note for note in heard.heard if note[0] == "recording"] == [
        ("recording", name) for name in "ab"
    ]


def test_a_base_without_the_workload_file_is_not_launched(sides):
    (sides / "base/workloads/a.py").unlink()
    launches = Launches(recording)

    run = measured(sides, launches, Records({}), "a")

    assert launches.turns == [("head", "a")]
    assert "the base has no such file" in run.touched[0].detail


@pytest.mark.parametrize("answer", [BOOM, a_result()])
def test_a_base_that_leaves_no_record_means_that_the_workload_is_measured(sides, answer):
    launches = Launches(lambda side, _task: answer if side == "base" else None)

    run = measured(sides, launches, Records({}), "a")

    assert [measured.workload for measured in run.measured] == ["a"]
    assert run.touched[0].code == "not_recorded"
    assert run.failed == run.programs == ()


def test_a_failed_workload_leaves_no_record(sides):
    launches = Launches(lambda _side, _task: BOOM)

    run = measured(sides, launches, Records({"a": a_touched("a")}), "a", is_against=False)

    assert len(launches.turns) == 1
    assert run.failed
    assert run.programs == ()


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
        result = a_result(**(taken if task.index else {"losses": [1.0]}))
        return msgspec.structs.replace(result, program=a_program(task.workload.id))

    run = measured(sides, Launches(answers), Records({"a": a_touched("a")}), "a", processes=2)

    (program,) = run.programs
    assert words in "".join(program.obstacles)
    assert bool(program.obstacles) == bool(words)


def test_pairs_too_show_a_program_that_computes_other_numbers_each_time(sides):
    losses = iter([1.0, 2.0])

    def answers(side, task):
        result = a_result(losses=[next(losses) if side == "head" else 1.0])
        return msgspec.structs.replace(result, program=a_program(task.workload.id))

    judge = Suspects(lambda run: ([] if run.paired else ["a"], 1))

    run = measured(sides, Launches(answers), Records({"a": a_touched("a")}), "a", judge=judge)

    (program,) = run.programs
    assert program.obstacles == ("its numerics vary from launch to launch",)
