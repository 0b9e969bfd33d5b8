"""Which pairs of several workloads may be forked from processes that have imported libraries."""

import msgspec
import pytest

from tests.sessions import BOOM, Launches, Recorder, Suspects, a_plan_at, a_result, some_checks

TORCH, OTHER = "import torch\n", "import numpy\n"


def forked(_side, task):
    return msgspec.structs.replace(a_result(task.index), forked=bool(task.libraries))


@pytest.fixture
def pairs(measure_against, tmp_path):
    """Launch so many pairs of "a" and "b"; return of each workload which of them were forked."""

    def measure(
        wanted, *, answers=forked, heads=(TORCH, TORCH), open_starts=(), listener=None, **more
    ):
        for side in ("base", "head"):
            for name, text in zip("ab", heads, strict=True):
                (tmp_path / side / "workloads" / f"{name}.py").write_text(text)

        def count(run):
            return {paired.workload: len(paired.pairs) for paired in run.paired}

        def undecided(run):
            left = {name: number - count(run).get(name, 0) for name, number in wanted.items()}
            return {name: float(pairs) for name, pairs in left.items() if pairs > 0}, 2

        def find_open(run):
            return {name for name, least in open_starts if count(run).get(name, 0) < least}

        judge = Suspects(undecided, open_starts=find_open)
        how = {"budget_s": 1000.0, "judge": judge}
        plan = a_plan_at(tmp_path / "head", *"ab")
        run = measure_against(
            Launches(answers, **more),
            plan,
            how=how,
            checks=some_checks(),
            listener=listener,
        )
        return {paired.workload: [pair.forked for pair in paired.pairs] for paired in run.paired}

    return measure


def test_pairs_of_a_number_that_two_workloads_have_are_forked(pairs):
    assert pairs({"a": 2, "b": 2}) == {"a": [True, True], "b": [True, True]}


def test_a_pair_of_a_number_that_no_other_has_is_fresh(pairs):
    assert pairs({"a": 0, "b": 2}) == {"b": [False, False]}
    assert pairs({"a": 2, "b": 3})["b"] == [True, True, False]


def test_workloads_of_other_libraries_share_nothing(pairs):
    assert pairs({"a": 1, "b": 1}, heads=(TORCH, OTHER)) == {"a": [False], "b": [False]}


def test_a_workload_whose_head_does_anything_before_its_libraries_is_fresh(pairs):
    sets = f"import os\nos.environ['ATEN_CPU_CAPABILITY'] = 'default'\n{TORCH}"

    assert pairs({"a": 1, "b": 1}, heads=(sets, TORCH)) == {"a": [False], "b": [False]}


def test_pairs_are_fresh_until_nothing_of_a_start_is_open(pairs):
    kinds = pairs({"a": 3, "b": 3}, open_starts=[("a", 1), ("b", 2)])

    assert kinds == {"a": [False, True, True], "b": [False, False, True]}


@pytest.mark.parametrize(
    ("others", "told"),
    [(2, 2 * [(True, False)] + 2 * [(False, True)]), (0, 4 * [(False, False)])],
)
def test_a_fresh_pair_is_timed_like_the_forked_ones_that_follow(pairs, others, told):
    launches = []

    def note(side, task):
        launches.append((task.workload.id, (task.forks_next, bool(task.libraries))))
        return forked(side, task)

    pairs({"a": 2, "b": others}, answers=note, open_starts=[("a", 1)])

    heads = 2
    assert [words for name, words in launches[heads:] if name == "a"] == told


def test_on_a_gpu_pairs_are_fresh(pairs):
    assert pairs({"a": 1, "b": 1}, device="cuda:0") == {"a": [False], "b": [False]}


def test_a_workload_that_cannot_be_forked_is_not_asked_again(pairs):
    """A pair of which only one side was forked counts for nothing."""
    asked = []

    def answers(side, task):
        asked.extend([(side, task.workload.id)] * bool(task.libraries))
        return msgspec.structs.replace(a_result(task.index), forked=side == "base")

    assert pairs({"a": 2, "b": 2}, answers=answers) == {"a": [False] * 2, "b": [False] * 2}
    assert len(asked) == len(set(asked)) == 2


def test_a_pair_that_counts_for_nothing_is_not_told(pairs):
    listener = Recorder()

    def answers(side, task):
        is_forked = bool(task.libraries) and side == "base"
        return msgspec.structs.replace(a_result(task.index), forked=is_forked)

    pairs({"a": 2, "b": 2}, answers=answers, open_starts=[("a", 1), ("b", 1)], listener=listener)

    told = [said[1] for said in listener.heard if said[0] == "pair_finished"]
    assert sorted(told) == ["a", "a", "b", "b"]


@pytest.mark.parametrize("side", ["base", "head"])
def test_one_that_fails_when_it_is_forked_is_launched_fresh(pairs, side):
    def answers(of, task):
        return BOOM if task.libraries and of == side else forked(of, task)

    assert pairs({"a": 2, "b": 2}, answers=answers) == {"a": [False] * 2, "b": [False] * 2}


@pytest.mark.parametrize(
    ("late", "heads", "asked"),
    [
        (
            {"a": "x", "b": "x"},
            (TORCH, TORCH),
            {"a": ("torch", "torch.x"), "b": ("torch", "torch.x")},
        ),
        # What only one of them imports would be imported for it alone.
        ({"a": "x", "b": ""}, (TORCH, TORCH), {"a": ("torch",), "b": ("torch",)}),
        # Its root comes late, too: between them stands what nobody has seen.
        ({"a": "x", "b": "x"}, (OTHER, OTHER), {"a": ("numpy",), "b": ("numpy",)}),
    ],
)
def test_late_imports_that_workloads_have_in_common_come_before_the_fork(pairs, late, heads, asked):
    libraries = {}

    def answers(side, task):
        name = task.workload.id
        libraries[name] = task.libraries
        own = (f"torch.{late[name]}",) * bool(late[name])
        return msgspec.structs.replace(forked(side, task), late_libraries=own)

    pairs({"a": 2, "b": 2}, answers=answers, open_starts=[("a", 1), ("b", 1)], heads=heads)

    assert libraries == asked


def test_what_one_side_alone_imports_late_comes_after_the_fork(pairs):
    libraries = []

    def answers(side, task):
        libraries.append(task.libraries)
        late = ("torch.x",) * (side == "head")
        return msgspec.structs.replace(forked(side, task), late_libraries=late)

    pairs({"a": 2, "b": 2}, answers=answers, open_starts=[("a", 1), ("b", 1)])

    assert {*libraries} == {(), ("torch",)}
