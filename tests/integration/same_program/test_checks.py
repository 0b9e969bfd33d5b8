"""Workloads that run the same program on both sides are not launched: a real repository."""

import json
import os
import shutil

import pytest

from ci_perf.errors import ExitCode
from tests import repositories
from tests.projects import NAP_SETTINGS, Project

# Two workloads: each takes one module of the product, and both its data.
WORKLOAD = '''
"""Sleeps as long as its module says."""
import time
from ci_perf.workload import Workload
from product import {module}
def step():
    time.sleep({module}.seconds())
'''
MODULE = """
import colorsys
import pathlib
_HERE = pathlib.Path(__file__).parent
def seconds():
    return float((_HERE / "seconds.txt").read_text())
def unused():
    return 0
"""
SLOWER = MODULE.replace(".read_text())", ".read_text()) * 4")


@pytest.fixture(autouse=True)
def everything_on(monkeypatch, tmp_path):
    """As a user has it: records are made, believed, and kept in a cache of the user."""
    for command in ("CHECK", "RUN"):
        monkeypatch.delenv(f"CI_PERF_{command}_ALL")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def git(tmp_path):
    """A project with two workloads on main, and a branch that is checked out."""
    git = repositories.init(tmp_path / "project")
    project = Project(git.root)
    for name in ("quick", "slow"):
        project.workload(name, WORKLOAD.format(module=name))
    project.suite("quick", "slow", settings=NAP_SETTINGS, device="cpu")
    (git.root / "product").mkdir()
    for name in ("quick", "slow"):
        (git.root / f"product/{name}.py").write_text(MODULE)
    (git.root / "product/seconds.txt").write_text("0.005")
    (git.root / "README.md").write_text("A product.\n")
    git.ask("add", "--all")
    git.commit()
    git.ask("switch", "--quiet", "--create", "branch")
    return git


def checked(git, *more):
    """Check against main; return how it ended, the run, and the rows."""
    done, run, comparison = Project(git.root).check_against_main(*more)
    assert done.code in {ExitCode.OK, ExitCode.REGRESSED, ExitCode.NO_ANSWER}, done.err
    return done, run, comparison["rows"]


def said(done):
    return [line for line in done.err.splitlines() if ": recording" in line]


def test_a_check_records_the_base_and_the_next_one_believes_neither_cache_nor_run_file(git):
    (git.root / "README.md").write_text("A better product.\n")
    git.commit()

    done, run, rows = checked(git)

    assert done.code == ExitCode.OK, done.err
    assert len(said(done)) == 2
    assert [row["code"] for row in rows] == ["same_program", "same_program"]
    assert all(row["same"]["files"] >= 3 for row in rows)
    assert (run["measured"], run["paired"], len(run["same"])) == ([], [], 2)

    compared = Project(git.root).run("compare", "../run.json", "--format", "json")

    assert compared.code == ExitCode.NO_ANSWER  # a run file that claims it is not believed
    assert {row["code"] for row in json.loads(compared.out)["rows"]} == {"unproven_program"}
    assert "the base has no record of its program" in compared.err

    again, _, rows = checked(git)

    assert len(said(again)) == 2
    assert [row["code"] for row in rows] == ["same_program", "same_program"]


HARMLESS = {
    "product/slow.py": MODULE + "# a comment\n",
    "product/other.py": MODULE,
}
TOUCHING = {
    "product/seconds.txt": ("0.006", "product/seconds.txt differs"),
    "colorsys.py": ("", "colorsys.py is new, and the program has looked for such a name"),
}


def test_list_says_what_a_check_would_measure_and_launches_nothing(git):
    git.commit(README_md="A better product.\n")
    checked(git)  # records the base
    for path, text in HARMLESS.items():
        (git.root / path).write_text(text)

    harmless, answer = touched(git)

    assert (answer["touched"], len(answer["same"])) == ([], 2)
    assert "recording" not in harmless.err
    for path, (text, words) in TOUCHING.items():
        (git.root / path).write_text(text)
        assert [row["detail"] for row in touched(git)[1]["touched"]] == [words, words]
        git.ask("stash", "--include-untracked")
    assert {row["detail"] for row in touched(git, HF_HOME="other")[1]["touched"]} == {
        "no record of the base's program holds here: the environment variable HF_HOME is new"
    }
    suite = git.root / "workloads/suite.toml"
    before = suite.read_text()
    suite.write_text(before.replace('"min"', '"median"'))
    assert {row["detail"] for row in touched(git)[1]["touched"]} == {
        "its settings in suite.toml are not those of the base"
    }


def test_a_branch_that_adds_the_suite_is_told_that_all_of_it_is_new(git):
    git.ask("rm", "-r", "--quiet", "workloads")
    git.commit()
    git.ask("switch", "--quiet", "--create", "adds")
    git.ask("checkout", "--quiet", "main", "--", "workloads")
    git.commit()

    assert {row["detail"] for row in touched(git, "branch")[1]["touched"]} == {
        "the suite of the base has no such workload"
    }


def touched(git, base="main", **environment):
    done = Project(git.root).run("list", "--against", base, "--json", **environment)
    assert done.code == ExitCode.OK, done.err
    return done, json.loads(done.out)


def test_records_that_accept_has_written_need_not_be_made_anew(git, tmp_path):
    git.ask("switch", "--quiet", "main")
    project = Project(git.root)
    project.accept_first()
    git.commit()
    assert len(list((git.root / "baselines").glob("*/*/programs/*.json"))) == 2
    git.ask("switch", "--quiet", "branch")
    git.ask("merge", "--quiet", "main")
    git.commit()
    shutil.rmtree(tmp_path / "cache")

    done, _, rows = checked(git)
    compared = project.run("compare", "../run.json")

    assert said(done) == []
    assert [row["code"] for row in rows] == ["same_program", "same_program"]
    assert all(row["base"] for row in rows)
    assert compared.code == ExitCode.OK, compared.err

    done, run, rows = checked(git, "quick", "--all")

    assert done.code == ExitCode.OK, done.err
    assert said(done) == []
    assert len(run["measured"]) == len(run["programs"]) == 1
    assert [touched["code"] for touched in run["touched"]] == ["asked"]
    assert not any(row["code"] == "same_program" for row in rows)


def test_a_slower_function_is_found_by_the_only_workload_that_runs_it(git, tmp_path):
    """The head forges records: it takes the file that it changes out of its own and the cache's."""
    git.ask("switch", "--quiet", "main")
    Project(git.root).accept_first()
    git.commit()
    git.ask("switch", "--quiet", "--force-create", "branch")
    (git.root / "product/slow.py").write_text(SLOWER)
    forged = set()
    for path, pattern in (("project/baselines", "programs/*.json"), ("cache", "*slow/*.json")):
        for record in (tmp_path / path).rglob(pattern):
            document = json.loads(record.read_text())
            if document.get("paths", {}).pop("product/slow.py", None):
                record.write_text(json.dumps(document))
                forged.add(path)
    assert forged == {"project/baselines", "cache"}
    git.commit()

    done, run, rows = checked(git)

    assert done.code == ExitCode.REGRESSED, done.err
    said = {(row["workload"], row.get("metric")): row for row in rows}
    assert {workload for (workload, _), row in said.items() if row["code"] == "same_program"} == {
        "quick"
    }
    assert said["slow", "step_time_s"]["verdict"] == "regressed"
    assert [touched["detail"] for touched in run["touched"]] == ["product/slow.py differs"]
    assert [program["workload"] for program in run["programs"]] == ["slow"]


def install(site, version, factor):
    """Install a version of a library that sleeps so many times as long."""
    (site / "library.py").write_text(f"FACTOR = {factor}\n")
    for old in site.glob("*.dist-info"):
        shutil.rmtree(old)
    metadata = site / f"library-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Name: library\nVersion: {version}\n")


@pytest.fixture
def site(git, tmp_path, monkeypatch):
    """A folder of installed packages, one of which the project requires, with a baseline."""
    site = tmp_path / "site-packages"
    site.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
    install(site, "1.0", 1)
    git.ask("switch", "--quiet", "main")
    (git.root / "product/quick.py").write_text(
        MODULE.replace("import colorsys", "import library").replace(
            ".read_text())", ".read_text()) * library.FACTOR"
        )
    )
    (git.root / "requirements.txt").write_text("library==1.0\n")
    git.commit()
    Project(git.root).accept_first("quick")
    git.commit()
    git.ask("switch", "--quiet", "branch")
    git.ask("merge", "--quiet", "main")
    git.commit()
    return site


def test_packages_that_the_change_asks_for_are_measured_and_cleared_by_no_pairs(git, site):
    (git.root / "requirements.txt").write_text("library==2.0\n")
    git.commit()
    assert len(touched(git)[1]["same"]) == 1  # the same packages are installed as before

    install(site, "2.0", 4)
    done, run, rows = checked(git, "quick", "--budget", "6s")

    assert run["interleaved"]["dependencies"] == ["requirements.txt"]
    assert [each["detail"] for each in run["touched"]] == [
        "requirements.txt differs, and the installed packages are not those of the baseline"
    ]
    assert run["paired"][0]["pairs"]
    time = next(row for row in rows if row["metric"] == "step_time_s")
    assert (time["verdict"], time["code"]) == ("inconclusive", "other_packages")
    assert time["ratio"] > 2
    assert done.code == ExitCode.NO_ANSWER


def test_other_packages_that_the_change_does_not_ask_for_are_left_to_the_pairs(git, site):
    (git.root / "README.md").write_text("A better product.\n")
    git.commit()
    install(site, "2.0", 1)

    done, _, rows = checked(git, "quick")

    assert [row["code"] for row in rows] == ["same_program"]
    assert done.code == ExitCode.OK
