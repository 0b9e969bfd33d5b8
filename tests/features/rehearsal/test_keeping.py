"""rehearsed.json: written for later reports, and read as the file of a stranger."""

import pytest

from ci_perf.baselines import layout
from ci_perf.errors import InvalidFileError
from ci_perf.gate import compare
from ci_perf.gate.commit_suite import RepositoryFolders
from ci_perf.model import codec
from ci_perf.model.rehearsed import PlantAnswer
from ci_perf.report import headline
from tests.comparisons import a_change, a_comparison
from tests.rehearsals import a_document, a_rehearsal, a_rehearsed, an_attempt
from tests.runs import CPU, GPU, STEADY, a_measured, a_run


def test_each_suite_of_a_machine_keeps_its_last_rehearsal(tmp_path):
    first, other = a_rehearsal(suite="smoke"), a_rehearsal(suite="standard")
    again = a_rehearsal(suite="smoke", mlp=a_rehearsed())

    for suite in (first, other, again):
        layout.write_rehearsed(tmp_path, CPU, suite)

    kept = layout.read_rehearsed(tmp_path, CPU)
    assert kept is not None
    assert kept.suites == {"smoke": again, "standard": other}
    assert layout.read_rehearsed(tmp_path, GPU) is None


@pytest.mark.parametrize(
    ("text", "instead", "said"),
    [
        ('"rehearsed"', '"baseline"', "baseline"),
        ('"alike":"clear"', '"alike":"perfect"', "perfect"),
        ('"ratio":1.075', '"ratio":-1', "ratio"),
        ('"iterations":1000', '"iterations":0', "a size of the planted work, found 0"),
        ('"limit":0.05', '"limit":0.05,"more":1', "more"),
    ],
)
def test_a_file_that_does_not_say_what_it_must_is_refused_and_breaks_no_check(
    tmp_path, text, instead, said
):
    layout.write_rehearsed(tmp_path / "baselines", CPU, a_rehearsal(suite="smoke"))
    (file,) = tmp_path.rglob("rehearsed.json")
    written = codec.encode(a_document()).replace(" ", "").replace("\n", "")
    assert text in written
    file.write_text(written.replace(text, instead))
    heard = []

    with pytest.raises(InvalidFileError, match=r"rehearsed\.json"):
        layout.read_rehearsed(tmp_path / "baselines", CPU)
    known = compare.basis(
        "standard",
        CPU,
        "",
        RepositoryFolders(
            root=tmp_path, workloads=tmp_path / "workloads", baselines=tmp_path / "baselines"
        ),
        notify=heard.append,
    )

    assert known.rehearsed is None
    assert any(said in each for each in heard)


def test_a_check_knows_what_was_rehearsed_of_its_workloads(tmp_path):
    layout.write_rehearsed(tmp_path / "baselines", CPU, a_rehearsal(suite="smoke", w=a_rehearsed()))
    folders = RepositoryFolders(
        root=tmp_path, workloads=tmp_path / "workloads", baselines=tmp_path / "baselines"
    )

    judged = [
        compare.with_baselines(
            a_run(a_measured(name, *STEADY)), folders, label="", fail_on=None, notify=lambda _: None
        ).rehearsed
        for name in ("w", "other")
    ]

    assert judged == [a_rehearsal(w=a_rehearsed()).note({"w"}), None]


MISSED = an_attempt(PlantAnswer.UNCHANGED)


@pytest.mark.parametrize(
    ("workloads", "said"),
    [
        ({"w": a_rehearsed()}, "; rehearsed here on 2026-12-01: 7.5 % found in 41 s"),
        ({"w": a_rehearsed(MISSED)}, "; rehearsed here on 2026-12-01: 7.5 % not found"),
        ({"w": a_rehearsed(alike="red")}, "; rehearsed here on 2026-12-01: 7.5 % not found"),
        (
            {"v": a_rehearsed(MISSED), "w": a_rehearsed(an_attempt(), an_attempt(share=0.15))},
            "; rehearsed here on 2026-12-01: 7.5 % found in 41 s, in 1 of 2 workloads",
        ),
    ],
)
def test_the_scope_of_a_report_says_what_was_found(workloads, said):
    note = a_rehearsal(**workloads).note(workloads)

    scope = "".join(headline.tell_scope(a_comparison(a_change("w"), rehearsed=note)))

    assert scope.replace("\N{NO-BREAK SPACE}", " ").endswith(said)
