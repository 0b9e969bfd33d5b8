"""Shapes of report of which base and head were launched in turns, or should have been."""

from ci_perf.model import metrics
from ci_perf.model.comparison import Drifted, Interval, Signs, Verdict
from ci_perf.model.explanation import Explanation
from ci_perf.model.process import NO_RESULT_IN_TIME, Phase
from ci_perf.model.validity import Status
from tests.comparisons import a_change, a_comparison, a_remedy, an_interleaved, an_uncompared
from tests.step_profiles import a_cause, a_function
from tests.unit.report.parts import (
    GIB,
    OWN,
    UNCHANGED,
    a_cleared,
    a_doubt,
    a_loss,
    an_undecided,
    elsewhere,
)


def a_suspect(workload, ratio, **more):
    return a_change(workload, Verdict.LIKELY_SLOWER, ratio=ratio, **more)


def who_moved():
    """One regression is the change's; two suspects are the machine's."""
    return a_comparison(
        a_loss("resnet18", 1.061, drift=1.104, pairs=6),
        a_cleared("bert", 1.041, pairs=4),
        a_cleared("vit", 0.962),
        a_change("llama", ratio=0.998, code="within_limit", pairs=4),
        *UNCHANGED,
        interleaved=an_interleaved(suspects=4, pairs=23),
    )


def stale():
    """Every suspect is as much slower: it is the machine, or a baseline of another time."""
    drifted = Drifted(
        workload="attention",
        metric=metrics.STEP_TIME.name,
        ratio=1.042,
        sessions=12,
        since="2026-10-01T10:00:00Z",
    )
    return a_comparison(
        *(a_cleared(name, drift) for name, drift in (("bert", 1.038), ("vit", 1.041))),
        *(a_cleared(f"conv.batch={2**i}", 1.04 + 0.001 * i) for i in range(5)),
        an_undecided("loader", pairs=18, remedy=a_remedy()),
        *UNCHANGED,
        drifted=(drifted,),
        interleaved=an_interleaved(suspects=8, pairs=81),
    )


def unconfirmed():
    """Without launches of the base: suspicions, a gain among them, and nothing that fails."""
    return a_comparison(
        an_undecided("loader"),
        a_change("attention", Verdict.INCONCLUSIVE, ratio=0.91, code="history_alone"),
        a_suspect("bert", 1.043),
        a_suspect("resnet18", 1.12, base_sessions=2, smallest_detectable=0.071),
        *UNCHANGED,
    )


def likely_slower():
    """A machine that is too busy: what it says of more work, of the same work, and of one pair."""
    more = Signs(direction="worse", moved=("operators", "flops"))
    one_pair = {"code": "too_few_pairs", "pairs": 1, "interval": None}
    return a_comparison(
        a_suspect(
            "gpt_train",
            1.38,
            code="spread",
            pairs=4,
            signs=more,
            interval=Interval(low=0.8, high=2.1),
            remedy=a_remedy(18),
        ),
        a_suspect("vmap", 11.0, signs=more, smallest_detectable=None, **one_pair),
        an_undecided("bert", **one_pair),
        an_undecided(
            "loader",
            ratio=1.006,
            smallest_detectable=0.024,
            pairs=4,
            signs=Signs(direction="equal", equal=("operators", "flops")),
            remedy=a_remedy(18),
        ),
        a_change(
            "accuracy",
            ratio=1.006,
            code="within_limit",
            drift=1.304,
            pairs=9,
            signs=Signs(direction="worse", moved=("operators",)),
        ),
        *(
            a_loss(name, metric=metrics.OPERATORS, base=560, head=642, gate=False)
            for name in ("gpt_train", "vmap", "accuracy")
        ),
        verdict=Verdict.LIKELY_SLOWER,
        interleaved=an_interleaved(suspects=5, pairs=19, stopped="budget"),
    )


def undecided_pairs():
    """Every way in which launches of base and head in turns may end without an answer."""
    return a_comparison(
        an_undecided("bert", pairs=9, remedy=a_remedy(13)),
        an_undecided("vit", code="too_few_pairs", pairs=1, smallest_detectable=None),
        an_undecided("loader", pairs=18, remedy=a_remedy()),
        an_undecided("conv", code="two_modes", pairs=18, remedy=a_remedy(spread=0.6)),
        an_undecided("gpt", code="base_failed", note="ImportError: no module named kernels"),
        an_undecided("moe", code="base_failed", note="killed by SIGSEGV", pairs=2),
        a_suspect("whisper", 1.07, note="no compiler"),
        an_undecided(
            "dlrm",
            code="ranges_overlap",
            metric=metrics.PEAK_ALLOCATED,
            interval=None,
            base=3.1 * GIB,
            smallest_detectable=0.01,
        ),
        *UNCHANGED,
        interleaved=an_interleaved(
            suspects=8,
            pairs=57,
            spent_s=1203.0,
            stopped="budget",
            notes=("gpt: setup of the base took 31 s", "lstm: one pair was left out"),
        ),
    )


def undecided_history():
    """Every way in which history alone has no answer."""
    return a_comparison(
        an_undecided("bert", code="too_few_sessions", base_processes=5, base_sessions=1),
        an_undecided("conv", code="two_modes"),
        an_undecided("loader"),
        *UNCHANGED,
    )


def required():
    """No answer, where one is required; and one that is not."""
    return a_comparison(
        an_undecided("loader", pairs=18, remedy=a_remedy(), require=True),
        an_undecided("bert", pairs=18, interval=Interval(low=0.96, high=1.083)),
        *UNCHANGED,
        interleaved=an_interleaved(suspects=2, pairs=36),
    )


def new_machine():
    """No history here, and judged all the same."""
    note = "another machine: gpu_model: NVIDIA H100 → NVIDIA H200"
    return a_comparison(
        *(elsewhere(name, note, gate=False) for name in ("bert", "resnet18")),
        an_uncompared("vit", Verdict.NEW, head=OWN),
        a_change("bert", ratio=1.004, code="within_limit", pairs=4),
        a_loss("resnet18", 1.083, pairs=6, own_file=True),
        a_change("vit", ratio=0.997, code="within_limit", pairs=6),
        interleaved=an_interleaved(pairs=16),
    )


def an_exact(workload, metric, base, head, **more):
    verdict = Verdict.REGRESSED if head > base else Verdict.UNCHANGED
    more = {"limit": 0.0, "gate": False} | more
    return a_change(workload, verdict, metric=metric, base=base, head=head, **more)


def slower_and_larger():
    """Two workloads slower, one of them larger, with the operators that explain it."""
    return a_comparison(
        a_loss("gpt_train", 1.17, item_unit="token"),
        a_loss("gpt_infer", 1.199, item_unit="token"),
        an_exact("gpt_infer", metrics.OPERATORS, 88, 124),
        an_exact("gpt_infer", metrics.FLOPS, 1.2e9, 1.596e9),
        an_exact("gpt_train", metrics.OPERATORS, 560, 642),
        an_exact("gpt_train", metrics.FLOPS, 3.6e9, 4.65e9),
        an_exact(
            "gpt_train", metrics.PEAK_ALLOCATED, 3.1 * GIB, 3.255 * GIB, limit=0.01, gate=True
        ),
        a_change("classify", code="within_limit", pairs=4),
        an_exact("classify", metrics.OPERATORS, 31, 31),
        an_exact("classify", metrics.FLOPS, 1e6, 1e6),
        an_exact("classify", metrics.PEAK_ALLOCATED, GIB / 16, GIB / 16, limit=0.01),
        interleaved=an_interleaved(pairs=31),
    )


def busy():
    """Nobody knows anything, because the machine had too much else to do."""
    anything = Interval(low=0.0, high=1e40)
    return a_comparison(
        an_undecided("gpt_train", pairs=2, interval=anything, remedy=a_remedy(limit=0.93)),
        an_undecided(
            "gpt_train", metric=metrics.HOST_RSS_PEAK, base=GIB, pairs=2, remedy=a_remedy(13)
        ),
        an_undecided("gpt_infer", code="two_modes", pairs=1, interval=anything, remedy=a_remedy()),
        an_uncompared(
            "classify",
            Verdict.FAILED,
            f"{NO_RESULT_IN_TIME} of 300 s (`timeout_s` in suite.toml)",
            phase=Phase.TIMED,
        ),
        an_exact("gpt_train", metrics.OPERATORS, 560, 642),
        a_change("search"),
        validity=a_doubt(
            Status.DEGRADED, "host_pressure", "tasks waited for a CPU 100% of the timed region"
        ),
        interleaved=an_interleaved(suspects=3, pairs=5, spent_s=361.0, budget_s=360.0),
    )


def explained():
    """Rows that moved, with what a step does differently: all kinds, nothing at all, unknown."""
    replaced = a_cause(
        "new",
        "Attention.forward",
        ("new", "aten::bmm", 0, 8),
        ("new", "aten::_softmax", 0, 4),
        ("gone", "aten::_scaled_dot_product_flash_attention_for_cpu", 4, 0),
        calls=(4, 12),
        delta_s=2.4e-3,
    )
    wider = a_cause(
        "other_shape",
        "Mlp.forward",
        ("other_shape", "aten::addmm", 18, 18),
        calls=(18, 18),
        arguments_base="f32[32,64] f32[64,256]",
        arguments_head="f32[32,64] f32[64,384]",
        further=2,
    )
    item = a_cause(
        "synchronises",
        "log_loss",
        ("synchronises", "aten::_local_scalar_dense", 0, 2),
        calls=(0, 2),
        delta_s=4e-4,
        place=a_function("log_loss", 88, "train.py"),
        line=91,
    )
    again = a_cause(
        "more",
        "Block.forward",
        ("more", "aten::addmm", 6, 12),
        calls=(6, 12),
        is_backward=True,
        delta_s=2e-4,
    )
    called = a_cause(
        "slower",
        "fetch",
        calls=(1, 1),
        place=a_function("fetch", 14, "data.py"),
        line=14,
        evidence="measured",
        delta_s=3e-4,
    )
    larger = a_cause(
        "new",
        "search",
        ("new", "aten::clone", 0, 2),
        calls=(0, 2),
    )
    other = a_cause("fewer", "tidy", ("fewer", "aten::clone", 3, 1), calls=(3, 1))
    foreach = a_cause(
        "gone",
        "step",
        ("gone", "aten::mul_", 52, 0),
        ("new", "aten::_foreach_mul_", 0, 1),
        calls=(52, 1),
        in_head=False,
    )
    return a_comparison(
        a_loss(
            "bert_finetune",
            1.081,
            explanation=Explanation(
                causes=(replaced, item, wider, again, called),
                others=(other,),
                further=3,
                varying=2,
                pairs=3,
            ),
        ),
        a_loss(
            "search",
            1.19,
            metric=metrics.PEAK_ALLOCATED,
            base=3.1 * GIB,
            explanation=Explanation(causes=(larger,), pairs=1),
        ),
        a_loss("loader", 1.3, explanation=Explanation()),
        a_loss("moe", 1.06, explanation=Explanation(trouble="head: ended by signal 9 (SIGKILL)")),
        a_change(
            "optimizer",
            Verdict.IMPROVED,
            ratio=0.874,
            explanation=Explanation(causes=(foreach,), others=(other,), pairs=2),
        ),
        *UNCHANGED,
        interleaved=an_interleaved(suspects=5, pairs=44),
    )
