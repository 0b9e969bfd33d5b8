"""`check --against main`: what main has is judged, or the check is not green."""

import sys

import pytest

from ci_perf.errors import ExitCode
from ci_perf.report.sheet import Label
from tests import repositories
from tests.projects import FAST, NAP, NAP_SETTINGS, SLOW, Project

NAMES = ("accepted", "faster", "slower")


@pytest.fixture
def repository(tmp_path):
    """Three workloads on main, of which one has a baseline; a branch makes one of them slower."""
    git = repositories.init(tmp_path / "project")
    project = Project(git.root).suite(*NAMES, settings=NAP_SETTINGS)
    for name in NAMES:
        project.workload(name, NAP.replace("product", f"product_{name}"))
        (git.root / f"product_{name}.py").write_text(FAST)
    git.commit()
    project.accept_first("accepted")
    git.commit()
    git.ask("switch", "--quiet", "--create", "branch")
    (git.root / "product_slower.py").write_text(SLOW)
    git.commit()
    return git


def find_rows(comparison):
    return {(row["workload"], row.get("metric", "")): row for row in comparison["rows"]}


def test_what_the_budget_leaves_is_not_compared_and_what_is_new_is_new(repository, tmp_path):
    project = Project(repository.root).suite(*NAMES, "added", settings=NAP_SETTINGS)
    project.workload("added", NAP.replace("product", "product_faster"))
    repository.commit()

    done, _, comparison = project.check_against_main("--wait", "0s", "--budget", "0s")

    assert done.code == ExitCode.NO_ANSWER, done.err
    codes = {
        name: row["code"] for (name, metric), row in find_rows(comparison).items() if not metric
    }
    assert codes == {"faster": "too_few_pairs", "slower": "too_few_pairs", "added": "new"}
    said = f"{Label.NOT_COMPARED.value}: `faster`, `slower`"
    assert said in done.out
    assert "No baseline yet: `added`." in done.out
    # A job that has only the file of the run says the same.
    again = Project(tmp_path).run(
        *("compare", "run.json", "--baselines", "project/baselines", "--fail-on", "never")
    )
    assert again.code == ExitCode.NO_ANSWER, again.err
    assert said in again.out


RECORDS = "import ci_perf; ci_perf.record({own})"
WRITES = """
import json, sys
results = [{{"command": name, "times": [s, s]}} for name, s in {own}.items()]
json.dump({{"results": results}}, open(sys.argv[1], "w"))
"""


@pytest.mark.parametrize(
    ("program", "base", "head", "options", "lost"),
    [
        (
            RECORDS,
            {"time.ttft": 0.03, "count.tokens": 7},
            {"count.tokens": 7},
            ("--", sys.executable, "program.py"),
            ["time.ttft"],
        ),
        (
            WRITES,
            {"encode": 0.1, "decode": 0.2},
            {"encode": 0.1, "decode2": 0.9},
            ("--reads", "hyperfine", "--", sys.executable, "program.py", "{output}"),
            ["time.decode"],
        ),
    ],
    ids=["record", "a benchmark that is renamed"],
)
def test_a_metric_that_the_head_loses_is_missing(tmp_path, program, base, head, options, lost):
    git = repositories.init(tmp_path / "project")
    (git.root / "program.py").write_text(program.format(own=base))
    git.commit()
    git.ask("switch", "--quiet", "--create", "branch")
    (git.root / "program.py").write_text(program.format(own=head))
    git.commit()

    done, _, comparison = Project(git.root).check_against_main(
        *("--wait", "0s", "--budget", "1s", "--fail-on", "never", *options)
    )

    assert done.code == ExitCode.NO_ANSWER, done.err
    rows = comparison["rows"]
    assert [row["metric"] for row in rows if row["code"] == "missing"] == lost
    (name,) = (each.partition(".")[2] for each in lost)
    assert f"{Label.MISSING.value}: `command` `{name}`" in done.out
    assert f"Missing, though the base has it: `command` `{name}`. Restore it." in done.out
