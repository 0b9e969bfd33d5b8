"""`check --against`: each side follows the suite of its own commit, and the base's rules hold."""

import pytest

from ci_perf.errors import ExitCode
from tests import repositories
from tests.projects import FAST, NAP, NAP_SETTINGS, SLOW, Project

LIBRARY = {"a": FAST, "b": SLOW}
ORDER = 'python_path = ["{}", "{}"]\n'
SETUP = 'setup = {{ command = "mkdir -p gen && cp {}/product.py gen" }}\n'
GENERATED = 'python_path = ["gen"]\n'


@pytest.fixture
def project(tmp_path):
    """A repository without a suite; what `setup` makes is ignored."""
    git = repositories.init(tmp_path / "project")
    (git.root / ".gitignore").write_text("gen/\n")
    for folder, text in LIBRARY.items():
        (git.root / folder).mkdir()
        (git.root / folder / "product.py").write_text(text)
    return git


def suite(git, extra, *, body=NAP, settings=NAP_SETTINGS, names=("nap",), table=""):
    """Commit a suite whose top says this."""
    project = Project(git.root)
    for name in names:
        project.workload(name, body)
    project.suite(*names, extra=extra, settings=settings, device="cpu")
    if table:
        file = git.root / "workloads/suite.toml"
        file.write_text(file.read_text() + table)
    git.commit()


def branch(git):
    git.ask("switch", "--quiet", "--create", "branch")


def checked(git, *more):
    """Check against main; return how it ended, and the comparison."""
    done, _, comparison = Project(git.root).check_against_main(*more)
    return done, comparison


def row(comparison, metric="step_time_s", workload="nap"):
    return next(
        each
        for each in comparison["rows"]
        if (each["workload"], each.get("metric")) == (workload, metric)
    )


def test_another_setup_is_a_loss_that_is_found(project):
    suite(project, SETUP.format("a") + GENERATED)
    branch(project)
    suite(project, SETUP.format("b") + GENERATED)

    done, comparison = checked(project)

    assert done.code == ExitCode.REGRESSED, done.err
    assert row(comparison)["ratio"] > 2
    assert [change["name"] for change in comparison["gate_changes"]] == ["setup.command"]


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ('setup = { command = "exit 7" }\n' + ORDER.format("a", "b"), "setup of the base"),
        ("not toml\n", "suite.toml"),
    ],
)
def test_a_base_whose_own_suite_cannot_be_followed_is_incomparable(project, before, said):
    suite(project, before)
    branch(project)
    suite(project, ORDER.format("a", "b"))

    done, comparison = checked(project)

    assert done.code == ExitCode.NO_ANSWER, done.err
    found = row(comparison, "")
    assert (found["verdict"], found["code"]) == ("inconclusive", "not_comparable")
    assert said in found["note"]


def test_other_parameters_are_other_work(project):
    body = NAP.replace("product.SECONDS)", "product.SECONDS)\n")
    suite(project, ORDER.format("a", "b"), body=body, table="parameters = { n = 1 }\n")
    branch(project)
    suite(project, ORDER.format("a", "b"), body=body, table="parameters = { n = 2 }\n")

    done, comparison = checked(project)

    assert done.code == ExitCode.NO_ANSWER, done.err
    assert row(comparison, "")["note"] == "parameters in suite.toml: {'n': 1} → {'n': 2}"


def test_a_base_without_a_suite_is_launched_as_the_head_says(project):
    (project.root / "README.md").write_text("no suite\n")
    project.commit()
    branch(project)
    suite(project, ORDER.format("a", "b"))

    done, comparison = checked(project)

    assert done.code == ExitCode.OK, done.err
    assert row(comparison)["pairs"]
    assert "launched there as the head says: nap" in " ".join(comparison["interleaved"]["notes"])


def test_another_order_of_python_path_is_found_and_what_a_head_loosens_counts_after_the_merge(
    project,
):
    suite(project, ORDER.format("a", "b"))
    branch(project)
    milder = NAP_SETTINGS.replace("limit = 0.5", "limit = 1.0, gate = false")
    suite(project, ORDER.format("b", "a"), settings=milder)
    file = project.root / "workloads/suite.toml"
    head = '[suites.smoke]\nfail_on = "never"'
    file.write_text(file.read_text().replace("[suites.smoke]", head))
    project.commit()

    done, comparison = checked(project)
    again = Project(project.root).run("compare", "../run.json")

    assert done.code == again.code == ExitCode.REGRESSED, done.err
    assert row(comparison)["verdict"] == "regressed"
    assert row(comparison)["ratio"] > 2
    assert "python_path" in {change["name"] for change in comparison["gate_changes"]}
    assert len(comparison["gate_changes"]) == 4


def test_a_workload_that_the_head_removes_is_missing_until_the_merge(project):
    suite(project, ORDER.format("a", "b"), names=("nap", "other"))
    branch(project)
    (project.root / "workloads/other.py").unlink()
    suite(project, ORDER.format("a", "b"))

    done, comparison = checked(project)

    assert done.code == ExitCode.NO_ANSWER, done.err
    assert row(comparison, "", "other")["code"] == "missing"


def test_a_baseline_that_outlived_its_workload_on_the_base_is_a_note_until_it_is_accepted(project):
    suite(project, ORDER.format("a", "b"), names=("nap", "other"))
    Project(project.root).accept_first()
    (project.root / "workloads/other.py").unlink()
    suite(project, ORDER.format("a", "b"))
    branch(project)
    project.commit(README_md="A product.\n")

    _, comparison = checked(project)
    accepted = Project(project.root).run("accept", "../run.json", "--reason", "Tidy up")

    assert {each["workload"] for each in comparison["rows"]} == {"nap"}
    (note,) = [each for each in comparison["interleaved"]["notes"] if "other" in each]
    assert note.endswith("any more: other; `ci-perf accept` removes their files")
    assert accepted.code == ExitCode.OK, accepted.err
    assert "no workload of the suite has this name any more" in accepted.out
    assert list(project.root.glob("baselines/**/other.json")) == []
    assert list(project.root.glob("baselines/*/smoke/nap.json"))
