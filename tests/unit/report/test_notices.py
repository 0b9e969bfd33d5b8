"""What stands before the table: what else moved, and how far the machine is trusted."""

import msgspec
import pytest

from ci_perf.model import metrics
from ci_perf.model.comparison import Difference, Verdict
from ci_perf.model.validity import Reason, Status, Validity
from ci_perf.report import commands, html, markdown, notices, remarks, terminal
from tests.comparisons import a_change, a_comparison, a_head, an_interleaved
from tests.runs import an_image
from tests.unit.report.parts import a_cleared

MINUS = "\N{MINUS SIGN}"
OLD, NEW = "pytorch@sha256:417bd75df636", "pytorch@sha256:6acf597eeb8e"
MAY_HIDE = "This may explain, or hide, a change"
BY_HISTORY = f"{MAY_HIDE} that only the history shows."
TORCH = {"torch": ("2.12.0", "2.13.0")}


def differing(*rows, **facts):
    """Two sides whose environments differ by these facts, each (base, head)."""
    found = [
        Difference(field=name, base=base, head=head) for name, (base, head) in sorted(facts.items())
    ]
    return a_comparison(*(rows or (a_change(),)), differences=tuple(found))


def said(comparison):
    return ["".join(phrase) for phrase in notices.list_notices(comparison)]


@pytest.mark.parametrize(
    ("rows", "more", "parts"),
    [
        (
            [a_cleared("ddp", 1.25, metric=metrics.SCALING_EFFICIENCY)],
            {},
            [f"ddp scaling efficiency ({MINUS}20.0 %)"],
        ),
        ([a_cleared("bert", 1.041, gate=False)], {}, []),
        (
            [a_change(verdict=Verdict.LIKELY_SLOWER, ratio=1.1)],
            {"exit_code": 1},
            ["Nothing is proven: the job fails because fail_on asks"],
        ),
    ],
    ids=["more is better", "no gate", "fail_on"],
)
def test_what_pairs_cleared_is_named_where_it_could_have_failed_the_job(rows, more, parts):
    found = said(a_comparison(*rows, **more))

    assert len(found) == bool(parts)
    assert [part for part in parts if part not in found[0]] == []


# --- what differs between two environments


@pytest.mark.parametrize(
    ("facts", "notices_of_it"),
    [
        ({}, []),
        ({"image": (OLD, NEW)}, [f"⚠️ The environment differs: image {OLD} → {NEW}. {MAY_HIDE}."]),
        (
            {"image": ("none", NEW), "cuda": ("12.6", "13.0")},
            [f"⚠️ The environment differs: image none → {NEW}, cuda 12.6 → 13.0. {MAY_HIDE}."],
        ),
        (
            {"packages": ("0" * 16, "1" * 16)},
            [f"⚠️ The environment differs: other installed packages. {BY_HISTORY}"],
        ),
    ],
    ids=["nothing", "another image", "an image", "packages"],
)
def test_what_differs_is_told_with_the_image_first(facts, notices_of_it):
    assert said(differing(**facts)) == notices_of_it


def test_every_form_of_the_report_says_it_before_its_table():
    found = differing(image=(OLD, NEW), **TORCH)
    forms = (
        markdown.render(found),
        html.comparison(found),
        terminal.render(found, width=200, color=False),
    )

    for text in forms:
        assert "The environment differs" in text
        assert text.index("The environment differs") < text.index("unchanged")


@pytest.mark.parametrize(
    ("facts", "files", "opening"),
    [
        (
            {"packages": ("0" * 16, "1" * 16)},
            ("requirements.txt", "uv.lock"),
            "⚠️ This change alters requirements.txt, uv.lock, and the installed",
        ),
        (
            {},
            ("pyproject.toml", ".github/workflows/perf.yml"),
            "ℹ️ This change alters pyproject.toml, and the installed packages",  # noqa: RUF001
        ),
        ({}, (".github/workflows/perf.yml",), None),
    ],
    ids=["installed", "asked for", "of a CI"],
)
def test_packages_that_the_change_may_have_brought_are_left_to_the_history(facts, files, opening):
    how = an_interleaved(dependencies=files)
    found = said(msgspec.structs.replace(differing(**facts), interleaved=how))

    assert [each.startswith(opening) for each in found] == [True] * bool(opening)


def test_a_row_that_other_packages_may_have_moved_says_how_far_its_history_is():
    gain = a_change(code="other_packages", ratio=1.0, drift=0.9)
    loss = a_change(verdict=Verdict.INCONCLUSIVE, code="other_packages", ratio=1.3, drift=1.3)

    assert f"its history had other packages ({MINUS}10.0 %); the base was" in remarks.describe(gain)
    assert "its history had other packages; the base was" in remarks.describe(loss)


@pytest.mark.parametrize("image", [None, an_image(engine="podman")])
def test_a_container_is_named_as_it_was_asked_for_and_measures_again(image):
    comparison = a_comparison(a_change(), head=a_head(image=image))
    row = "| Image | `none` | `ghcr.io/us/perf:2.13@sha256:fedcba987654"

    assert (row in markdown.render(comparison)) is bool(image)
    for command in (
        commands.measure(comparison),
        commands.check_by_pairs(comparison.rows, comparison),
    ):
        assert ("--runner podman" in command) is bool(image)


# --- whether the machine can be trusted


@pytest.mark.parametrize(
    ("workloads", "text"),
    [
        (("", "nap", "", "nap", "mlp"), "host_pressure: busy; also nap, mlp"),
        (("nap", "", "nap", "mlp"), "host_pressure (nap): busy; also mlp"),
        (("nap", "nap", ""), "host_pressure (nap): busy"),
    ],
)
def test_a_reason_names_the_others_whom_it_concerns_each_once(workloads, text):
    reasons = tuple(
        Reason(code="host_pressure", status=Status.DEGRADED, detail="busy", workload=name)
        for name in workloads
    )
    validity = Validity(status=Status.DEGRADED, reasons=reasons)

    (notice,) = notices.list_notices(a_comparison(a_change(), validity=validity))
    assert "".join(notice).endswith(f", or hide one: {text}")


@pytest.mark.parametrize(
    ("codes", "text"),
    [
        (["machine_moved_no_gate"], "or slower than before: "),
        (["incomplete"], "⚠️ Some measurements did not finish"),
        (["machine_moved"], "so times are judged only by pairs of launches:"),
        (["machine_moved", "host_pressure"], "; host_pressure: x"),
        (["host_pressure"], "busy with other work"),
    ],
)
def test_the_machine_is_blamed_for_no_more_than_what_was_found(codes, text):
    reasons = tuple(Reason(code=one, status=Status.DEGRADED, detail="x") for one in codes)
    validity = Validity(status=Status.DEGRADED, reasons=reasons)
    comparison = a_comparison(a_change(), validity=validity)

    (notice,) = notices.list_notices(comparison)
    assert text in "".join(notice)
