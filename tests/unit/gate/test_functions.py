"""compare, accept and judge as functions: values in, values out."""

import pytest

from ci_perf.baselines import layout
from ci_perf.baselines.accept import Action
from ci_perf.errors import UsageError
from ci_perf.gate import accept, arguments, compare
from ci_perf.gate.accept import AcceptOptions
from ci_perf.gate.commit_suite import RepositoryFolders
from ci_perf.model.comparison import Verdict
from tests import repositories
from tests.accepting import accepted
from tests.programs import a_same_program
from tests.projects import Project
from tests.runs import SLOW, STEADY, a_measured, a_run


def compared(head, base, folders, notify=lambda _line: None):
    return compare.compare(head, base, RepositoryFolders(**folders), fail_on=None, notify=notify)


@pytest.fixture
def folders(tmp_path):
    return {
        "root": tmp_path,
        "baselines": tmp_path / "baselines",
        "workloads": tmp_path / "workloads",
    }


def test_two_runs_are_compared_without_a_file(folders):
    base, head = a_run(a_measured("w", *STEADY)), a_run(a_measured("w", *STEADY))

    comparison = compared(head, base, folders)

    assert comparison.base.label == comparison.head.label == f"run {head.id}"
    assert comparison.exit_code == 0


def test_a_run_alone_is_compared_with_the_baselines(folders):
    accepted(folders["baselines"], a_run(a_measured("w", *STEADY)))

    comparison = compared(a_run(a_measured("w", *STEADY)), None, folders)

    assert (comparison.base.sessions, comparison.verdict) == (1, Verdict.INCONCLUSIVE)
    assert {row.workload for row in comparison.rows} == {"w"}


def test_a_suite_that_is_not_there_is_told_and_judged_by_the_defaults(folders):
    said = []
    run = a_run(a_measured("w", *STEADY))

    compared(run, run, folders, said.append)

    assert said == [
        f"{folders['workloads']}/suite.toml: not found; the default limits apply",
    ]


@pytest.mark.parametrize("by_patch", [False, True], ids=["at once", "by a patch"])
def test_files_of_a_workload_that_the_suite_no_longer_has_are_removed(tmp_path, by_patch):
    git = repositories.init(tmp_path / "project")
    folders = {"root": git.root, "workloads": git.root / "workloads"}
    baselines, patch = git.root / "baselines", tmp_path / "the.patch"
    w = a_measured("w", *STEADY)
    accepted(baselines, a_run(a_measured("old", *STEADY), w))
    (old,) = baselines.rglob("old.json")
    record = layout.program_file(old)
    record.parent.mkdir()
    record.write_text("{}\n")
    Project(git.root).workload("w").suite("w")
    git.commit()

    def removed(**more):
        options = AcceptOptions(**folders, baselines=baselines, **more)
        answer = accept.accept(a_run(w), options, label="run", notify=lambda _line: None)
        return [each.workload for each in answer if each.action is Action.REMOVED]

    assert removed(select=("w",)) == []
    assert removed(patch=patch if by_patch else None) == ["old"]
    assert old.exists() == record.exists() == by_patch
    if by_patch:
        git.ask("apply", str(patch))
    assert not old.exists() | record.exists()
    assert list(baselines.rglob("w.json"))


def test_where_both_sides_run_the_same_program_it_says_why_nothing_is_accepted(folders):
    said = []
    options = AcceptOptions(**folders)

    assert (
        accept.accept(a_run(same=(a_same_program(),)), options, label="run", notify=said.append)
        == ()
    )
    line = said[-1]
    assert line.startswith("note: 1 workload not launched, because base and head run the same")
    assert "--all" in line


def test_a_refused_run_writes_nothing(folders):
    accepted(folders["baselines"], a_run(a_measured("w", *STEADY)))
    before = {path: path.read_bytes() for path in folders["baselines"].rglob("*.json")}
    options = AcceptOptions(**folders)

    with pytest.raises(UsageError, match="expected a reason"):
        accept.accept(
            a_run(a_measured("w", *SLOW), id="slow"),
            options,
            label="run",
            notify=lambda _line: None,
        )
    assert {path: path.read_bytes() for path in folders["baselines"].rglob("*.json")} == before


def test_every_path_of_the_python_api_is_below_the_root(tmp_path):
    Project(tmp_path).workload("mlp").suite("mlp")
    paths = dict.fromkeys(("output", "traces", "kernels", "base_python"), "a/b")

    options = arguments.measure_options(tmp_path, paths)

    assert {getattr(options, name) for name in paths} == {tmp_path / "a/b"}
    assert options.workloads == tmp_path / "workloads"
