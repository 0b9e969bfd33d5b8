"""`--against`: base and head of a real repository, launched in turns."""

import json
import shutil
import signal

import msgspec
import pytest

from ci_perf.baselines import layout
from ci_perf.errors import ExitCode
from ci_perf.judging.policy import EARLY_PAIRS
from tests import repositories
from tests.processes import is_measuring, wait_until
from tests.projects import FAST, NAP, NAP_SETTINGS, SLOW, Project


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A project with a baseline on main, and a branch that is checked out: only to be copied."""
    git = repositories.init(tmp_path_factory.mktemp("measured") / "project")
    project = Project(git.root)
    project.workload("nap", NAP).suite("nap", settings=NAP_SETTINGS, device="cpu")
    git.commit(product_py=FAST)
    project.accept_first()
    git.commit()
    git.ask("switch", "--quiet", "--create", "branch")
    return git


@pytest.fixture
def repository(measured, tmp_path):
    """A copy of that project."""
    return copied(measured, tmp_path)


@pytest.fixture(scope="module")
def slower(measured, tmp_path_factory):
    """A copy whose branch is slower, which has been checked: how that ended, and its rows."""
    git = copied(measured, tmp_path_factory.mktemp("slower"))
    git.commit(product_py=SLOW)
    return git, *checked(git, "--explain", "5m")


def copied(git, folder):
    """Copy a project and the files beside it."""
    shutil.copytree(git.root.parent, folder, dirs_exist_ok=True)
    return repositories.Repository(folder / git.root.name)


def checked(git, *more):
    """Check against main; return how it ended, and the rows of the step time by workload."""
    done, _, comparison = Project(git.root).check_against_main(*more)
    rows = comparison.get("rows", ())
    return done, {row["workload"]: row for row in rows if row.get("metric") == "step_time_s"}


@pytest.mark.story
def test_a_slower_product_is_proven_to_be_slower(slower):
    repository, done, rows = slower

    assert done.code == ExitCode.REGRESSED, done.err
    assert (rows["nap"]["verdict"], rows["nap"]["code"]) == ("regressed", "beyond_limit")
    assert rows["nap"]["pairs"] >= EARLY_PAIRS
    assert rows["nap"]["ratio"] > 2
    assert rows["nap"]["explanation"]["pairs"]
    assert len(repository.worktrees()) == 1


def test_a_slower_product_that_was_accepted_is_green(slower, tmp_path):
    checked_before, red, _ = slower
    repository = copied(checked_before, tmp_path)
    accepted = Project(repository.root).run("accept", "../run.json", "--reason", "exact attention")
    repository.commit()

    green, rows = checked(repository)

    assert (red.code, accepted.code) == (ExitCode.REGRESSED, ExitCode.OK)
    assert green.code == ExitCode.OK, green.err
    assert rows["nap"]["verdict"] == "unchanged"
    assert rows["nap"]["pairs"] == 0


def four_times_as_fast(baseline):
    """The same history, whose steps took a quarter of the time."""
    (session,) = baseline.sessions
    quarter = [one | {"step_time_s": one["step_time_s"] / 4} for one in session.processes]
    faster = msgspec.structs.replace(session, processes=tuple(quarter))
    return layout.with_headline(msgspec.structs.replace(baseline, sessions=(faster,)))


def test_a_baseline_that_is_wrong_blames_the_machine_and_not_the_change(repository):
    """The committed numbers say that it took a quarter of the time: somebody has edited them."""
    (file,) = repository.root.glob("baselines/*/smoke/nap.json")
    honest = layout.read(file)
    repository.ask("switch", "--quiet", "main")
    layout.write(repository.root / "baselines", four_times_as_fast(honest))
    repository.commit()
    repository.ask("switch", "--quiet", "--force-create", "branch")
    repository.commit()

    done, rows = checked(repository)

    assert done.code == ExitCode.OK, done.err
    assert (rows["nap"]["verdict"], rows["nap"]["code"]) == ("unchanged", "baseline_moved")
    assert rows["nap"]["drift"] > 3
    told = Project(repository.root).run("compare", "../run.json").out
    assert "The cause is the machine or the baseline" in " ".join(told.split())


def test_a_workload_that_the_base_does_not_know_runs_on_its_code(repository):
    """Without any baseline, the base's code answers: by the head's workload file."""
    Project(repository.root).workload("new", NAP).suite(
        "nap", "new", settings=NAP_SETTINGS, device="cpu"
    )
    repository.commit()

    done, rows = checked(repository, "new")

    assert done.code == ExitCode.OK, done.err
    assert (rows["new"]["verdict"], rows["new"]["code"]) == ("unchanged", "within_limit")


def test_a_slower_workload_file_is_a_regression_that_names_it(repository):
    """Nothing but the file of the workload has changed: it naps twice, and is called anew."""
    (repository.root / "workloads/nap.py").unlink()
    Project(repository.root).workload("sleeper", NAP + "    time.sleep(product.SECONDS)\n")
    suite = repository.root / "workloads/suite.toml"
    named = 'workload = "sleeper"\nname = "nap"'
    suite.write_text(suite.read_text().replace('workload = "nap"', named))
    repository.commit()

    done, rows = checked(repository)

    assert done.code == ExitCode.REGRESSED, done.err
    assert rows["nap"]["own_file"]


def test_where_the_head_s_file_does_not_run_on_the_base_its_own_does(repository):
    """The branch renames what the workload uses, and makes it slower."""
    Project(repository.root).workload("nap", NAP.replace("SECONDS", "PAUSE_S"))
    repository.commit(product_py=SLOW.replace("SECONDS", "PAUSE_S"))

    done, rows = checked(repository)

    assert done.code == ExitCode.REGRESSED, done.err
    assert rows["nap"]["own_file"]


def test_a_setup_that_fails_names_its_side_and_shows_its_last_words(repository):
    command = "echo no compiler >&2; : https://me:hunter2@it.example; exit 7"
    broken = f'setup = {{ command = "{command}" }}\n'
    Project(repository.root).suite("nap", settings=broken + NAP_SETTINGS, device="cpu")
    repository.commit()

    done, _ = checked(repository)

    assert done.code == ExitCode.NO_ANSWER
    assert "setup of the head" in done.err
    assert "no compiler" in done.err
    assert "hunter2" not in done.err + done.out
    assert len(repository.worktrees()) == 1


def test_a_ref_that_is_not_there_ends_it_before_anything_is_measured(repository):
    done = Project(repository.root).run("check", "--against=no-such-branch")

    assert done.code == ExitCode.USAGE
    assert "no-such-branch" in done.err
    assert "measuring" not in done.err


def test_a_baseline_that_cannot_be_read_is_told_before_anything_is_measured(repository):
    (file,) = repository.root.glob("baselines/*/smoke/nap.json")
    file.write_text("{}")

    done, _ = checked(repository)

    assert done.code == ExitCode.USAGE
    assert "nap.json" in done.err
    assert "measuring" not in done.err


def test_an_interrupt_keeps_the_run_and_leaves_no_worktree(repository):
    repository.commit(product_py=SLOW)
    project = Project(repository.root)
    process = project.start("check", "--against", "main", "--output", "../run.json")
    line = ""
    while "launching base and head alternately" not in line:
        line = process.stderr.readline()
        assert line, "it ended before base and head took turns"
    wait_until(lambda: is_measuring(process.pid))
    process.send_signal(signal.SIGINT)

    process.communicate(timeout=60)

    assert process.returncode == ExitCode.INTERRUPTED
    assert len(repository.worktrees()) == 1
    run = json.loads((repository.root.parent / "run.json").read_text())
    assert run["interleaved"]["stopped"] == "interrupted"
    assert [one["workload"] for one in run["measured"]] == ["nap"]


def test_a_run_without_baselines_launches_the_base_of_everything(repository):
    repository.commit()
    project = Project(repository.root)
    done = project.run("run", "--against", "main", "--baselines", "../nowhere", "-o", "../run.json")

    assert done.code == ExitCode.OK, done.err
    compared = project.run("compare", "../run.json", "--baselines", "../nowhere")
    assert compared.code == ExitCode.OK, compared.out
    assert "pairs" in compared.out
