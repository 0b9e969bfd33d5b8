"""Shapes of report of which base and head were launched in turns, or should have been."""

from ci_perf.model import metrics
from ci_perf.model.comparison import Drifted, Stale, Verdict
from tests.comparisons import a_change, a_comparison, a_remedy, an_interleaved, an_uncompared
from tests.unit.report.parts import GIB, OWN, UNCHANGED, cleared, undecided


def who_moved():
    """One regression is the change's; two suspects are the machine's."""
    return a_comparison(
        a_change("resnet18", Verdict.REGRESSED, ratio=1.061, drift=1.104, pairs=6),
        cleared("bert", 1.041, pairs=4),
        cleared("vit", 0.962),
        a_change("llama", ratio=0.998, code="confirmed", pairs=4),
        *UNCHANGED,
        interleaved=an_interleaved(suspects=4, pairs=23),
    )


def stale():
    """Every suspect is as much slower: it is the machine, or a baseline of another time."""
    return a_comparison(
        *(cleared(name, drift) for name, drift in (("bert", 1.038), ("vit", 1.041))),
        *(cleared(f"conv.batch={2**i}", 1.04 + 0.001 * i) for i in range(5)),
        undecided("loader", pairs=18, remedy=a_remedy()),
        *UNCHANGED,
        stale=Stale(suspects=8, cleared=7, ratio=1.041),
        drifted=(
            Drifted(
                workload="attention",
                metric=metrics.STEP_TIME.name,
                ratio=1.042,
                sessions=12,
                since="2026-10-01T10:00:00Z",
            ),
        ),
        interleaved=an_interleaved(suspects=8, pairs=81),
    )


def unconfirmed():
    """Without launches of the base: suspicions, a gain among them, and nothing that fails."""
    return a_comparison(
        undecided("loader"),
        a_change("attention", Verdict.UNCONFIRMED, ratio=0.91),
        a_change("bert", Verdict.UNCONFIRMED, ratio=1.043),
        a_change(
            "resnet18", Verdict.UNCONFIRMED, ratio=1.12, code="assumed", smallest_detectable=0.071
        ),
        *UNCHANGED,
    )


def undecided_pairs():
    """Every way in which launches of base and head in turns may end without an answer."""
    return a_comparison(
        undecided("bert", pairs=9, remedy=a_remedy(13)),
        undecided("vit", code="too_few_pairs", pairs=1, smallest_detectable=None),
        undecided("loader", pairs=18, remedy=a_remedy()),
        undecided("conv", code="two_modes", pairs=18, remedy=a_remedy(spread=0.6)),
        undecided("lstm", code="clocks_moved", pairs=9),
        undecided("gpt", code="base_failed", note="ImportError: no module named kernels"),
        undecided("moe", code="base_failed", note="killed by SIGSEGV", pairs=2),
        a_change("whisper", Verdict.UNCONFIRMED, ratio=1.07, note="no compiler"),
        undecided(
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
        undecided("bert", code="too_few_sessions", base_processes=5, base_sessions=1),
        undecided("conv", code="two_modes"),
        undecided("loader"),
        *UNCHANGED,
    )


def new_machine():
    """No history here, and judged all the same."""
    note = "gpu_model: NVIDIA H100 → NVIDIA H200"
    return a_comparison(
        *(
            an_uncompared(
                name,
                Verdict.INCOMPARABLE,
                note,
                code="other_machine",
                base=OWN,
                head=OWN,
                gate=False,
            )
            for name in ("bert", "resnet18")
        ),
        an_uncompared("vit", Verdict.NEW, head=OWN),
        a_change("bert", ratio=1.004, code="confirmed", pairs=4),
        a_change(
            "resnet18",
            Verdict.REGRESSED,
            ratio=1.083,
            pairs=6,
            own_file=True,
        ),
        a_change("vit", ratio=0.997, code="confirmed", pairs=6),
        interleaved=an_interleaved(pairs=16),
    )


ALL = (
    who_moved,
    stale,
    unconfirmed,
    undecided_pairs,
    undecided_history,
    new_machine,
)
