"""`ci-perf history --cost`: what checks took, month by month, and in money."""

import re

import pytest

from ci_perf.model.environment import GpuMachine
from ci_perf.model.summary import Cost
from ci_perf.system import files
from tests.comparisons import a_change, a_comparison, a_head
from tests.projects import Project

A100, H100 = (
    GpuMachine(gpu_model=name, gpu_count=1, gpu_memory_bytes=80 * 2**30, mig=False)
    for name in ("NVIDIA A100", "NVIDIA H100")
)
PRICES = 'currency = "EUR"\n[per_hour]\nnvidia-a100 = 2.0\nnvidia-h100 = 5.4\n'
JANUARY, MARCH = "2026-01-31T23:59:59Z", "2026-03-01T00:00:00Z"


def a_cost(started_at=JANUARY, **more):
    took = {"launches": 8, "launched_s": 600.0, "held_s": 1800.0, "waited_s": 60.0, "saved": 3}
    return Cost(started_at=started_at, **{**took, **more})


@pytest.fixture
def costs(tmp_path):
    """Run `history --cost` on these comparisons, each in an artifact of its own."""

    def costs(*checks, prices=None, words=()):
        (tmp_path / "checks").mkdir(exist_ok=True)
        for number, (run, machine, cost) in enumerate(checks):
            path = tmp_path / f"checks/{number}/ci-perf/comparison.json"
            path.parent.mkdir(parents=True)
            head = a_head(machine=machine, run=run)
            files.write(path, a_comparison(a_change(), head=head, cost=cost))
        if prices is not None:
            (tmp_path / "prices.toml").write_text(prices)
            words = (*words, "--prices", "prices.toml")
        return Project(tmp_path).run("history", "--cost", "checks", *words)

    return costs


def rows(text):
    return [re.split(r"  +", line.strip()) for line in text.splitlines() if "2026-" in line]


def test_months_and_machines_are_added_up(costs):
    done = costs(
        ("a", A100, a_cost()),
        ("b", A100, a_cost(launches=4)),
        ("c", H100, a_cost()),
        ("d", A100, a_cost(MARCH, saved=0)),
    )

    assert done.code == 0, done.err
    assert rows(done.out) == [
        ["2026-01", "nvidia-a100", "2", "12", "6", "20 min", "2 min", "1 h"],
        ["2026-01", "nvidia-h100", "1", "8", "3", "10 min", "1 min", "30 min"],
        ["2026-03", "nvidia-a100", "1", "8", "0", "10 min", "1 min", "30 min"],
    ]


def test_prices_make_money_of_the_time_that_a_machine_was_held(costs):
    done = costs(("a", A100, a_cost()), ("b", H100, a_cost()), prices=PRICES)

    assert "EUR" in done.out
    assert [row[-1] for row in rows(done.out)] == ["1.00", "2.70"]


def test_a_run_that_was_downloaded_twice_counts_once(costs):
    done = costs(("a", A100, a_cost()), ("a", A100, a_cost()))

    assert rows(done.out)[0][2] == "1"


def test_a_comparison_without_a_cost_is_counted_and_named(costs):
    done = costs(("a", A100, a_cost()), ("b", A100, None), ("c", None, a_cost()))

    assert len(rows(done.out)) == 1
    assert "Without a cost, of an older ci-perf or of no machine: 2 comparisons" in done.out


@pytest.mark.parametrize(
    ("prices", "told"),
    [
        ("per_hour", r"prices\.toml: expected TOML, found"),
        (PRICES.replace("2.0", "-2"), r"prices\.toml: \$\.per_hour\.nvidia-a100: expected"),
        (PRICES.replace("EUR", "euro"), r"prices\.toml: \$\.currency: expected"),
        (
            PRICES.replace("nvidia-a100", "nvidia-a10"),
            r"price of nvidia-a100, the machine of checks/0.*; did you mean 'nvidia-a10'",
        ),
    ],
)
def test_a_bad_file_of_prices_is_refused_and_shows_nothing(costs, prices, told):
    done = costs(("a", A100, a_cost()), prices=prices)

    assert (done.code, done.out) == (2, "")
    assert re.search(told, done.err)


def test_a_folder_without_comparisons_is_refused_with_what_to_do(costs):
    done = costs()

    assert done.code == 2
    assert "expected files called comparison.json below it, found none" in done.err


def test_a_damaged_comparison_is_named(costs, tmp_path):
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks/comparison.json").write_text("{")
    done = costs()

    assert done.code == 2
    assert "checks/comparison.json: expected" in done.err


def test_a_form_that_it_lacks_and_prices_alone_are_refused(costs, tmp_path):
    assert "expected --format terminal" in costs(words=("--format", "csv")).err
    done = Project(tmp_path).run("history", "--prices", "prices.toml")

    assert done.code == 2
    assert "--prices: expected --cost beside it" in done.err
