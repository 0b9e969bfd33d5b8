"""What is said of a calibration beside its table."""

import pytest

from ci_perf.baselines import machine_documents as documents
from ci_perf.cli import keeping
from tests.calibrations import a_calibration
from tests.runs import STEADY, a_measured, a_run


@pytest.fixture
def said(tmp_path, capsys):
    """Keep a calibration, and return what a person is told."""

    def keep(found, own=()):
        run = a_run(a_measured("matmul", *STEADY))
        target = tmp_path / "table.md"
        keeping.keep(found, run, tmp_path, form="markdown", target=target, own=own)
        return capsys.readouterr().err

    return keep


def test_a_new_statistic_is_told_with_the_workloads_that_it_speaks_for(said):
    found = said(a_calibration(statistic="p25"), own=["bert_base"])

    assert "median spoke for a launch of matmul before, and p25 will from now on" in found
    assert "bert_base" not in found


def test_where_the_suite_sets_every_statistic_nothing_must_be_accepted_anew(said):
    assert "anew" not in said(a_calibration(statistic="p25"), own=["matmul", "bert_base"])


def test_a_statistic_that_stays_is_not_worth_a_word(said, tmp_path):
    documents.write(tmp_path, a_calibration(statistic="p25"))

    assert "anew" not in said(a_calibration(statistic="p25"))
