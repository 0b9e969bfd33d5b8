"""What has to hold beside a claim: each check sees its cheat, and lets an honest change pass."""

import msgspec
import pytest

from ci_perf.features.proof import checks
from ci_perf.features.proof.claims import Answer, read_claims
from ci_perf.model import metrics
from ci_perf.model.comparison import Verdict
from ci_perf.model.gate_change import GateChange, GateKind
from tests.comparisons import a_change, a_comparison, a_numerics, an_uncompared
from tests.histories import a_head, a_pair, in_turns
from tests.programs import a_same_program
from tests.runs import a_failed, a_run, an_evidence

CLAIMS = read_claims(["w=5%"], [])
(CLAIM,) = CLAIMS
WORK = {"operators": 100, "flops": 1000}
SAME = a_numerics("w", Verdict.UNCHANGED, base=(1.0,), head=(1.0,))


def test_a_long_claim_loses_none_of_its_numbers():
    (claim,) = read_claims([f"{'w' * 90}=5%"], [])
    answer = Answer(holds=True, gain=0.208, low=0.144, high=0.266, pairs=6)

    assert checks.check_claim(claim, answer).detail.startswith("20.8 % [14.4 %, 26.6 %], 6 pairs: ")


def test_any_change_of_the_gate_is_named():
    loosened = GateChange(kind=GateKind.LIMIT, workload="w", name="step_time_s")
    judged = a_comparison(a_change("w"), gate_changes=(loosened,))

    check = checks.check_gate(judged)

    assert (check.holds, check.detail) == (False, "limit raised: w")
    assert checks.check_gate(a_comparison(a_change("w"))).holds
    less = GateChange(kind=GateKind.LESS_WORK, workload="w")  # has a check of its own
    assert checks.check_gate(a_comparison(a_change("w"), gate_changes=(less,))).holds


@pytest.mark.parametrize(
    ("more", "files", "found"),
    [
        ({}, (), "the same files on both sides"),
        ({"file": "base"}, (), "w: another workload file"),
        ({"incomparable": {"w": "other parameters"}}, (), "w: other parameters"),
        (
            {},
            ("workloads/helper.py",),
            "workloads/helper.py is changed; next: commit it to the base first",
        ),
    ],
)
def test_both_sides_run_the_same_workload(more, files, found):
    check = checks.check_workloads(in_turns(a_head(), [], **more), CLAIMS, files)

    assert (check.holds, check.detail) == (found == "the same files on both sides", found)


@pytest.mark.parametrize(
    ("run", "detail"),
    [
        (a_run(a_failed("w")), "w fails: RuntimeError: boom"),
        (a_run(same=(a_same_program("w"),)), "w: both sides run the same program"),
        (in_turns(a_head(), [], trouble="no product"), "w fails on the base: no product"),
        (a_head(), "w: no pair of launches; next: --budget"),
    ],
)
def test_a_workload_without_pairs_says_why(run, detail):
    check = checks.check_workloads(run, CLAIMS, ())

    assert (check.holds, check.detail) == (False, detail)


@pytest.mark.parametrize(
    ("changed", "holds"),
    [
        (["product.py", "csrc/kernel.cu", "README.md"], True),
        (["data/train.bin"], False),
        (["Makefile"], False),
        (["tokens.JSON"], False),
    ],
)
def test_what_is_no_code_may_be_an_input(changed, holds):
    assert checks.check_inputs(changed).holds is holds


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([SAME], "equal (tolerance: 0.1 %)"),
        ([], f"w: {checks.NO_RESULT}"),
        ([a_numerics("w")], "w: beyond_limit"),
        ([a_numerics("w", Verdict.UNCHANGED, note="random crops")], "w: random crops"),
    ],
)
def test_both_sides_compute_the_same_numbers(rows, found):
    check = checks.check_results(a_comparison(a_change("w"), *rows), CLAIMS)

    assert (check.holds, check.detail) == (rows == [SAME], found)


def test_the_tolerance_is_that_of_claimed_workloads():
    other = msgspec.structs.replace(SAME, workload="other", tolerance=0.05)

    check = checks.check_results(a_comparison(a_change("w"), SAME, other), CLAIMS)

    assert check.detail == "equal (tolerance: 0.1 %)"


@pytest.mark.parametrize(
    ("base", "head", "holds"),
    [
        (WORK, WORK, True),
        (WORK, {"operators": 60, "flops": 1000}, True),
        (WORK, {"operators": 40, "flops": 1000}, False),
        (WORK, {"operators": 0, "flops": 0}, False),
        (WORK, {"operators": 100, "flops": 900}, False),
        ({"operators": 0, "flops": 0}, {"operators": 0, "flops": 0}, False),
        ({}, {}, False),
    ],
)
def test_less_work_needs_a_reason(base, head, holds):
    pairs = [a_pair(1.0, 0.9, base=base, **head)]

    assert checks.check_work(pairs, "").holds is holds
    assert ("--because" in checks.check_work(pairs, "").detail) is not holds
    assert checks.check_work(pairs, "it was computed twice").holds


def test_a_step_without_operators_is_told_by_both_counts():
    pairs = [a_pair(1.0, 0.9, base=WORK, operators=0, flops=0)]

    assert checks.check_work(pairs, "").detail.startswith("1,000 → 0 FLOPs, 100 → 0 operators")


@pytest.mark.parametrize(
    ("base_cpu_s", "head_cpu_s", "holds"),
    [
        (1.0, 0.9, True),
        (0.9, 0.9, False),  # the base slept for a tenth
        (1.0, 3.6, True),  # more threads
        (0.96, 0.9, True),
        (0.25, 0.225, True),  # a busy machine
        (None, None, True),
    ],
)
def test_a_base_that_waits_is_no_gain(base_cpu_s, head_cpu_s, holds):
    base, head = (
        {"timed": {"cpu_s": cpu_s and (cpu_s,) * 5}} for cpu_s in (base_cpu_s, head_cpu_s)
    )
    pairs = [a_pair(1.0, 0.9, base=base, **head)]

    assert checks.check_waiting(pairs, CLAIM, "").holds is holds
    assert checks.check_waiting(pairs, CLAIM, "it waited for a lock").holds


@pytest.mark.parametrize(
    ("row", "holds"),
    [
        (a_change("w", verdict=Verdict.INCONCLUSIVE), True),  # the claim's own row
        (a_change("w", metric=metrics.HOST_RSS_PEAK, verdict=Verdict.INCONCLUSIVE), False),
        (a_change("other", verdict=Verdict.LIKELY_SLOWER), False),
        (a_change("other", verdict=Verdict.REGRESSED, gate=False), True),
        (a_change("other", verdict=Verdict.IMPROVED), True),
        (an_uncompared("other", Verdict.FAILED), False),
    ],
)
def test_no_other_row_that_gates_is_worse_or_open(row, holds):
    assert checks.check_others(a_comparison(row), CLAIMS).holds is holds


@pytest.mark.parametrize(
    ("base", "head", "holds"),
    [((1.0, 2.0), (1.0, 2.0), True), ((1.0,), (1.1,), False), ((1.0, 2.0), (1.0,), False)],
)
def test_another_seed_gives_the_same_on_both_sides(base, head, holds):
    pairs = [a_pair(1.0, 0.9, base={"losses": base}, losses=head)]

    assert checks.check_seed(pairs, "w", 0.001).holds is holds


def test_without_a_pair_no_seed_and_no_clock_agrees():
    assert not checks.check_seed((), "w", 0.001).holds
    assert not checks.check_clock((), CLAIM, 0.05).holds


def watched(wall_s, **more):
    """A launch of 250 steps, of which the monitor has seen so many seconds."""
    return {"evidence": an_evidence(wall_s=wall_s), **more}


@pytest.mark.parametrize(
    ("head", "holds"),
    [
        (watched(226.0), True),  # 0.9 s a step, and a second beside them
        (watched(250.0), False),  # as long as the base, whatever its blocks say
        (watched(226.0, replaced=("time.perf_counter",)), False),
        (watched(0.0), False),
        ({}, False),
    ],
)
def test_the_clock_of_the_monitor_bounds_what_blocks_say(head, holds):
    pairs = [a_pair(1.0, 0.9, base=watched(251.0), **head)] * 3

    assert checks.check_clock(pairs, CLAIM, 0.05).holds is holds


def test_blocks_may_fill_all_that_the_monitor_has_seen():
    pairs = [a_pair(1.0, 0.9, base=watched(250.0), **watched(225.0))] * 3

    assert checks.check_clock(pairs, CLAIM, 0.05).holds


def test_the_first_failure_is_the_last_that_is_asked():
    asked = []

    def ask(name):
        asked.append(name)
        yield checks.check(name, "x" * 500, holds=name == "gate")

    found = list(
        checks.first_failure([lambda: ask("gate"), lambda: ask("work"), lambda: ask("seed")])
    )

    assert (asked, [len(each.detail) for each in found]) == (["gate", "work"], [60, 100])


def test_the_digest_is_of_what_the_head_computes():
    runs = [in_turns(a_head(), [a_pair(1.0, 0.9, losses=losses)]) for losses in ((1.0,), (2.0,))]

    assert checks.digest(runs, ["w"]) != checks.digest(runs[:1], ["w"])
    assert checks.digest(runs, ["w"]) == checks.digest(list(runs), ["w"])
    assert checks.digest(runs, ["x"]) == checks.digest([], ["w"]) == ""
    assert checks.digest([in_turns(a_head(), [], trouble="no product")], ["w"]) == ""
