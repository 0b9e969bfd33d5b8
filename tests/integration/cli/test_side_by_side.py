"""`ci-perf compare` of several runs: their numbers side by side, and what a million items cost."""

import re

import msgspec
import pytest

from ci_perf.cli import reports
from ci_perf.model.environment import GpuMachine
from ci_perf.model.validity import validity_of
from ci_perf.system import files
from tests.projects import Project
from tests.runs import HEAD_COMMIT, a_failed, a_measured, a_reason, a_run, an_environment

PRICES = 'currency = "EUR"\n[per_hour]\nnvidia-a100 = 2.0\nnvidia-h100 = 5.4\n'


def a_machine_run(model, step_s, *others, **more):
    """Measure 100 items per step on a GPU of this model."""
    hard = GpuMachine(gpu_model=model, gpu_count=1, gpu_memory_bytes=80 * 2**30, mig=False)
    workload = a_measured("mlp", step_s, items_per_step=100)
    return a_run(workload, *others, environment=an_environment(hard=hard), **more)


A100 = a_machine_run("NVIDIA A100", 2e-3, id="a")
H100 = a_machine_run("NVIDIA H100", 1e-3, id="h")


@pytest.fixture
def compared(tmp_path):
    """Run `compare` on these runs, with what else the command line says."""

    def compared(*runs, prices=PRICES, form="markdown"):
        names = []
        for number, run in enumerate(runs):
            names.append(f"{number}.json")
            files.write(tmp_path / names[-1], run)
        (tmp_path / "prices.toml").write_text(prices or "")
        options = ("--prices", "prices.toml") if prices else ()
        return Project(tmp_path).run("compare", *names, *options, "--format", form)

    return compared


def rows(done):
    """Return the cells of each line, by the names of workload and metric."""
    assert done.code == 0, done.err
    lines = re.findall(r"^\| (.*) \|$", done.out, flags=re.MULTILINE)
    cells = [[cell.strip("` ") for cell in line.split(" | ")] for line in lines]
    return {tuple(line[:2]): line[2:] for line in cells}


def test_machines_stand_side_by_side_with_what_a_million_items_cost(compared):
    table = rows(compared(A100, H100))

    assert table["workload", "metric"] == ["nvidia-a100", "nvidia-h100"]
    assert table["mlp", "step time"] == ["2.00 ms", "1.00 ms"]
    assert table["mlp", "throughput"] == ["50.0k images/s", "100k images/s"]
    # 2 EUR an hour are 5.56e-4 a second, in which 50,000 images are made.
    assert table["mlp", "EUR per million images"] == ["0.0111", "0.015"]
    assert table["all of them", "throughput, relative"] == ["1\u00d7", "2\u00d7"]
    assert table["all of them", "cost, relative"] == ["1\u00d7", "1.35\u00d7"]


def test_three_runs_of_one_machine_need_no_prices(compared):
    later = a_machine_run("NVIDIA A100", 4e-3, id="later", commit="c" * 40)

    table = rows(compared(A100, later, A100, prices=None))

    assert table["workload", "metric"] == [f"nvidia-a100 ({number})" for number in (1, 2, 3)]
    assert table["", "commit"] == [HEAD_COMMIT[:7], "c" * 7, HEAD_COMMIT[:7]]
    assert not [name for name in table if "EUR" in name[1]]


def test_what_one_machine_lacks_is_empty_there_and_explained(compared):
    failed = a_run(a_failed("mlp"), environment=H100.environment, id="failed")
    reason = a_reason("throttled", workload="mlp")
    distrusted = msgspec.structs.replace(A100, validity=validity_of((reason,)))

    done = compared(distrusted, failed)

    assert "No workload was measured in all runs" in done.out
    assert "throttled: `nothing left`" in done.out
    assert "`mlp` failed: `RuntimeError: boom`" in done.out
    assert "all of them" not in done.out


@pytest.mark.parametrize(
    ("prices", "told"),
    [
        (
            'currency = "EUR"\n[per_hour]\nnvidia-h10 = 2\nnvidia-a100 = 2',
            "did you mean 'nvidia-h10",
        ),
        (PRICES.replace("2.0", "0"), r"prices\.toml: \$\.per_hour\.nvidia-a100: expected"),
        (PRICES.replace("EUR", "euro"), r"prices\.toml: \$\.currency: expected"),
        ("per_hour", r"prices\.toml: expected TOML, found"),
    ],
)
def test_prices_that_say_no_price_of_a_machine_are_refused(compared, prices, told):
    done = compared(A100, H100, prices=prices)

    assert done.code == 2
    assert re.search(told, done.err)
    assert done.out == ""


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (a_machine_run("NVIDIA H100", 1e-3, suite="standard"), "expected a run of the suite smoke"),
        (
            a_machine_run("NVIDIA H100", 1e-3, commit="c" * 40),
            "found one of cccccccccccc on another",
        ),
    ],
)
def test_runs_whose_numbers_mean_something_else_are_refused(compared, other, told):
    done = compared(A100, other)

    assert done.code == 2
    assert told in done.err


@pytest.mark.parametrize("form", reports.COMPARISON_FORMS)
def test_runs_side_by_side_are_shown_as_asked_or_refused(compared, form):
    done = compared(A100, A100, A100, prices=None, form=form)

    if form == "json":
        assert (done.code, done.out) == (2, "")
        assert "--format: expected terminal or markdown or csv for this result" in done.err
    else:
        first = {"markdown": "**", "csv": "run,", "terminal": "3 runs"}[form]
        assert (done.code, done.out[: len(first)]) == (0, first)
