import csv
import sys
from io import StringIO
from pathlib import Path

import msgspec
import pandas as pd
import pytest

from ci_perf.errors import CiPerfError
from ci_perf.gate import compare
from ci_perf.gate.commit_suite import RepositoryFolders
from ci_perf.judging import launch_numbers
from ci_perf.model.comparison import Verdict
from ci_perf.report import frame
from tests.comparisons import a_change, a_comparison
from tests.runs import (
    GPU,
    a_failed,
    a_gpu_evidence,
    a_measured,
    a_process,
    a_run,
    an_environment,
    an_evidence,
)
from tests.unit.report import shapes, shapes_in_turns

RUN = a_run(a_measured("mlp", 1e-3, 2e-3, parameters={"width": 8}), a_failed("conv"))


def test_a_run_has_one_row_per_workload_metric_and_process():
    measured = frame.tabulate_runs(RUN).to_frame().query("outcome == 'measured'")

    metrics = launch_numbers.list_workload_numbers(RUN.measured[0], RUN)[0]
    assert metrics["items_per_s"] == 8.0 / metrics["step_time_s"]
    assert len(measured) == 2 * len(metrics)
    assert set(measured["metric"]) == set(metrics)
    assert list(measured.query("metric == 'step_time_s'")["value"]) == [1e-3, 2e-3]
    assert list(measured.query("metric == 'step_time_s'")["process"]) == [0, 1]
    assert set(measured["parameters"]) == {'{"width": 8}'}


def test_every_row_says_where_it_comes_from():
    first = frame.tabulate_runs(RUN).to_frame().iloc[0]

    origin = [RUN.id, RUN.source.commit, "AMD EPYC, 2 cores"]
    assert first[["run", "commit", "machine"]].tolist() == origin


def test_a_table_holds_also_what_is_recorded_and_never_judged():
    evidence = an_evidence(a_gpu_evidence())
    run = a_run(
        a_measured("a", 1e-3, evidence=evidence, flops=10**9, precision="bf16"),
        environment=an_environment(hard=GPU),
    )
    table = frame.tabulate_runs(run).to_frame().set_index("metric")

    assert table.loc["mfu", "value"] == pytest.approx(1e12 / 989.4e12)
    assert list(table.loc[["mfu", "power_w", "energy_j"], "unit"]) == ["share", "W", "J"]


def test_each_loss_has_a_row_with_the_number_of_its_step():
    run = a_run(a_measured("mlp", 1e-3, 1e-3, losses=(2.5, 0.5)))
    table = frame.tabulate_runs(run).to_frame().dropna(subset="step")

    assert set(table["metric"]) == {"loss"}
    assert list(table["process"]) == [0, 0, 1, 1]
    assert list(table["step"]) == [0, 1, 0, 1]
    assert list(table["value"]) == [2.5, 0.5, 2.5, 0.5]


def test_numerics_have_a_row_with_their_difference():
    table = (
        frame.tabulate_comparison(shapes.numerics_changed())
        .to_frame()
        .query("metric == 'numerics'")
    )

    assert list(table["difference"]) == [0.0099, 0.0, 0.0]
    assert set(table["limit"]) == {0.001}
    assert not table["gate"].any()


def test_a_failed_workload_has_a_row_with_its_reason():
    failed = frame.tabulate_runs(RUN).to_frame().query("workload == 'conv'")

    assert list(failed["reason"]) == ["timed: RuntimeError: boom"]
    assert list(failed["outcome"]) == ["failed"]
    assert failed["value"].isna().all()


def test_the_processes_that_finished_before_a_failure_are_kept():
    lost = msgspec.structs.replace(
        a_failed("conv", "the third process crashed"), processes=(a_process(0), a_process(1))
    )
    table = frame.tabulate_runs(a_run(lost)).to_frame()

    assert list(table.query("metric == 'step_time_s'")["process"]) == [0, 1]
    assert set(table["outcome"]) == {"failed"}


def test_a_row_of_pairs_has_their_number_and_how_far_its_history_lies():
    row = frame.tabulate_comparison(shapes.regressed()).to_frame().query("drift > 1").iloc[0]

    numbers = row[["pairs", "drift", "limit", "smallest_detectable"]].tolist()
    assert numbers == pytest.approx([9, 1.058, 0.02, 0.024])


def test_the_note_of_a_change_is_kept():
    comparison = a_comparison(a_change(verdict=Verdict.LIKELY_SLOWER, note="no compiler"))

    assert frame.tabulate_comparison(comparison).to_frame()["note"].dropna().tolist() == [
        "no compiler"
    ]


def test_a_row_has_what_exact_evidence_says_of_its_workload():
    judged = (
        frame.tabulate_comparison(shapes_in_turns.likely_slower())
        .to_frame()
        .query("metric != 'items_per_s'")
    )
    table = judged.set_index("workload")["signs"]

    assert table.loc["loader"] == "equal"
    assert table.loc["vmap"].tolist() == ["worse", pd.NA]


def test_a_comparison_has_one_row_per_row_in_its_order():
    comparison = shapes.regressed()
    table = frame.tabulate_comparison(comparison).to_frame()

    judged = table[table["verdict"].notna()]
    assert list(judged["workload"]) == [row.workload for row in comparison.rows]
    assert list(judged["verdict"]) == [row.verdict.value for row in comparison.rows]
    assert judged.iloc[1]["ratio"] == pytest.approx(1.061)
    assert judged.iloc[0][["ratio", "head_processes"]].isna().all()


def test_the_throughput_follows_its_step_time():
    table = frame.tabulate_comparison(
        a_comparison(a_change(base=2e-3, head=1e-3, items_per_step=8))
    ).to_frame()

    assert list(table["metric"]) == ["step_time_s", "items_per_s"]
    assert table.loc[1, ["base", "head", "unit"]].tolist() == [4000.0, 8000.0, "item/s"]


def test_a_first_run_has_the_numbers_of_its_head():
    run = a_run(a_measured("mlp", 1e-3, flops=10**9))
    folders = RepositoryFolders(root=Path("nowhere"), baselines=Path("nowhere/baselines"))
    first = compare.compare(run, None, folders, fail_on=None, notify=lambda _: None)

    table = frame.tabulate_comparison(first).to_frame().set_index("metric")
    assert table.loc["", "verdict"] == "new"
    numbers = table["head"].to_dict()
    assert (numbers["step_time_s"], numbers["items_per_s"]) == pytest.approx((1e-3, 8000.0))
    assert (numbers["flops"], numbers["host_rss_peak_bytes"]) == pytest.approx((1e9, 300 * 2**20))
    assert table["base"].isna().all()


@pytest.mark.parametrize(
    "empty",
    [frame.tabulate_runs(a_run()).to_frame(), frame.tabulate_comparison(a_comparison()).to_frame()],
)
def test_without_rows_the_columns_and_their_types_are_still_there(empty):
    full = (
        frame.tabulate_runs(RUN).to_frame()
        if "outcome" in empty
        else frame.tabulate_comparison(shapes.regressed()).to_frame()
    )

    assert len(empty) == 0
    assert dict(empty.dtypes) == dict(full.dtypes)


HOSTILE_CELLS = {
    '=HYPERLINK("https://evil.example")': '\'=HYPERLINK("https://evil.example")',
    "+1+1": "'+1+1",
    "-2+3": "'-2+3",
    "@SUM(A1)": "'@SUM(A1)",
    "\t=1": "'=1",
    "a\r\n::error::boo": "a : :error::boo",
    "##[error]boo": "# # [error]boo",
    "\x1b[2Jgone": "[2Jgone",
    "honest-name = 1": "honest-name = 1",
}


@pytest.mark.parametrize("text", HOSTILE_CELLS)
def test_no_cell_of_csv_commands_a_spreadsheet_a_terminal_or_a_ci(text):
    written = frame.tabulate_runs(a_run(a_failed(text, text), commit=text)).to_csv()

    row = next(csv.DictReader(StringIO(written)))
    assert row["workload"] == row["commit"] == HOSTILE_CELLS[text]
    assert len(written.splitlines()) == 2


def test_numbers_in_csv_keep_their_sign():
    rows: list[frame.Facts] = [{"text": "-1", "value": -1.5}, {"value": 2}]
    table = frame.TidyTable(rows, {"text": "string", "value": "float64"})

    assert table.to_csv() == "text,value\n'-1,-1.5\n,2.0\n"


@pytest.mark.parametrize(
    "table",
    [
        frame.tabulate_runs(RUN),
        frame.tabulate_comparison(shapes.regressed()),
        frame.tabulate_comparison(shapes_in_turns.likely_slower()),
    ],
)
def test_csv_without_pandas_is_as_pandas_writes_it(table, monkeypatch):
    as_pandas_does = table.to_frame().to_csv(index=False, lineterminator="\n")
    monkeypatch.setitem(sys.modules, "pandas", None)

    assert table.to_csv() == as_pandas_does


def test_a_missing_library_is_named_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)

    with pytest.raises(CiPerfError, match=r"tables need pandas, .*pip install 'ci-perf\[frames\]'"):
        frame.tabulate_comparison(a_comparison()).to_frame()
