"""The demo's pieces: its folder, its shell, its example and its own judgement of the outcome."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from ci_perf import demo, suite
from ci_perf.cli import demo_command
from ci_perf.demo import PROGRAMS, Shell, neutral, result
from ci_perf.errors import CiPerfError, UsageError
from ci_perf.model import metrics
from ci_perf.model.comparison import Verdict
from ci_perf.model.validity import Status, Validity
from ci_perf.system import files
from tests.comparisons import a_change, a_comparison, a_numerics, an_uncompared
from tests.runs import a_reason

EXAMPLE = suite.shipped("examples") / "tiny_vision"
SLOWER, FATTER = (("classify_images", "step_time_s"), ("search_gallery", "host_rss_peak_bytes"))
# Stands for ci-perf: leaves what the demo looks for, and measures nothing.
LEAVES_FILES = """
import pathlib, sys
if sys.argv[1] == "accept":
    pathlib.Path("baselines").mkdir()
    pathlib.Path("baselines/one").touch()
if sys.argv[1] == "check":
    pathlib.Path("report.md").touch()
"""


def a_row(workload, metric, verdict, **more):
    base = 1e-3 if metric == "step_time_s" else 300 * 2**20
    ratio = 2 if metric == "step_time_s" else 4 / 3
    return a_change(
        workload, verdict, base=base, ratio=ratio, metric=metrics.BY_NAME[metric], **more
    )


AS_PLANTED = (
    a_row(*SLOWER, Verdict.REGRESSED),
    a_row(*FATTER, Verdict.REGRESSED),
    a_row("embed_images", "step_time_s", Verdict.INCONCLUSIVE),
    a_row("train_classifier", "step_time_s", Verdict.UNCHANGED),
)


def git(folder, *words):
    shell = Shell(folder=folder, show=lambda _: None, environment=neutral(os.environ))
    shell.must("git", *words)


@pytest.fixture
def repository(tmp_path):
    """The example, committed."""
    folder = tmp_path / "a repository"
    demo.copy_example(EXAMPLE, folder)
    git(folder, "init", "--quiet", "--template=", "--initial-branch=main")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "Begin")
    return folder


# The outcome


def test_an_outcome_as_planted_holds_no_surprise():
    assert result.surprises(a_comparison(*AS_PLANTED), 1) == ()


def test_other_numerics_are_a_surprise_and_the_same_are_none():
    (surprise,) = result.surprises(
        a_comparison(*AS_PLANTED, a_numerics("embed_images"), a_numerics("b", Verdict.UNCHANGED)), 1
    )

    assert surprise == "embed_images: expected the same numbers, found others (numerics_changed)"


@pytest.mark.parametrize("missed", [0, 1])
def test_a_planted_change_that_was_not_seen_is_a_surprise(missed):
    rows = list(AS_PLANTED)
    rows[missed] = a_row(rows[missed].workload, rows[missed].metric, Verdict.UNCHANGED)

    (surprise,) = result.surprises(a_comparison(*rows), 1)

    assert surprise.startswith(f"{rows[missed].workload}: {rows[missed].metric}: ")
    assert "expected regressed, found unchanged" in surprise


def test_a_planted_row_that_vanished_is_a_surprise():
    (surprise,) = result.surprises(a_comparison(*AS_PLANTED[1:]), 1)

    assert "classify_images: step_time_s: expected regressed, found no such row" in surprise


def test_blaming_the_harmless_change_is_a_surprise():
    blamed = a_row("embed_images", "host_rss_peak_bytes", Verdict.REGRESSED)

    (surprise,) = result.surprises(a_comparison(*AS_PLANTED, blamed), 1)

    assert "embed_images: host_rss_peak_bytes: expected unchanged, found regressed" in surprise


def test_a_metric_without_a_gate_is_no_surprise():
    slow_start = a_row("embed_images", "first_step_s", Verdict.REGRESSED, gate=False)

    assert result.surprises(a_comparison(*AS_PLANTED, slow_start), 1) == ()


def test_a_workload_that_crashed_is_a_surprise():
    (surprise,) = result.surprises(
        a_comparison(*AS_PLANTED, an_uncompared("embed_images", note="RuntimeError: boom")), 1
    )

    assert surprise == "embed_images: expected a comparison, found failed: RuntimeError: boom"


def test_another_exit_code_is_a_surprise():
    (surprise,) = result.surprises(a_comparison(*AS_PLANTED), 3)

    assert surprise == "`ci-perf check`: expected exit code 1, found 3"


def test_the_ending_names_the_exit_code_and_every_cause():
    text = result.spoken(a_comparison(*AS_PLANTED), 1, ())

    assert "exit code 1" in text
    assert "classify_images: step time 1.00 ms → 2.00 ms (+100 %): a Python loop" in text
    assert "search_gallery: peak host memory 300 MiB → 400 MiB" in text
    assert "1 inconclusive, 1 unchanged" in text


def test_the_ending_of_a_failed_demo_lists_the_surprises_and_the_next_step():
    text = result.spoken(a_comparison(), 3, ("one thing", "another thing"))

    assert "\n  one thing\n  another thing\n" in text
    assert "exit code 3" in text
    assert "ci-perf demo --keep DIR" in text


@pytest.mark.parametrize(
    "verdict", [Verdict.LIKELY_SLOWER, Verdict.INCONCLUSIVE, Verdict.UNCONFIRMED]
)
def test_the_ending_on_a_busy_machine_says_that_it_was_too_busy(verdict):
    busy = a_reason("host_pressure", status=Status.DEGRADED)
    comparison = a_comparison(a_row(*SLOWER, verdict), *AS_PLANTED[1:])
    comparison = msgspec.structs.replace(
        comparison, validity=Validity(status=Status.DEGRADED, reasons=(busy,))
    )

    text = result.spoken(comparison, 3, result.surprises(comparison, 3))

    assert "Nothing was blamed that nobody planted, but this\nmachine could not prove all" in text
    assert f"expected regressed, found {verdict.value}" in text
    assert f"This machine was too busy ({busy.detail}): try again when it is quiet." in text


def test_a_false_alarm_on_a_busy_machine_is_not_excused():
    blamed = a_row("embed_images", "step_time_s", Verdict.LIKELY_SLOWER)
    comparison = a_comparison(a_row(*SLOWER, Verdict.INCONCLUSIVE), AS_PLANTED[1], blamed)

    text = result.spoken(comparison, 3, result.surprises(comparison, 3))

    assert "did not come out as planted" in text
    assert "embed_images: step_time_s: expected unchanged, found likely_slower" in text


# The folder


def test_the_folder_is_gone_however_the_demo_ends():
    def interrupted(folders):
        with demo.folder(None) as folder:
            folders.append(folder)
            (folder / "file").touch()
            raise KeyboardInterrupt

    folders = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(folders)

    assert not folders[0].exists()


def test_a_kept_folder_is_made_and_stays(tmp_path):
    with demo.folder(tmp_path / "new" / "demo") as folder:
        (folder / "file").touch()

    assert (tmp_path / "new" / "demo" / "file").exists()


def test_a_folder_that_holds_something_is_refused(tmp_path):
    (tmp_path / "thesis.tex").touch()

    with (
        pytest.raises(UsageError, match="expected a folder that is empty"),
        demo.folder(tmp_path),
    ):
        pass


def test_commits_need_no_git_configuration_and_heed_none(repository, tmp_path, monkeypatch):
    hostile = tmp_path / "gitconfig"
    hostile.write_text("[commit]\n gpgsign = true\n[gpg]\n program = false\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(hostile))

    git(repository, "commit", "--quiet", "--allow-empty", "-m", "Another")


# What the demo needs


@pytest.mark.parametrize("lacking", ["git", "torch"])
def test_the_demo_says_what_it_lacks(lacking):
    def find(name):
        return None if name == lacking else object()

    with pytest.raises(CiPerfError, match=f"demo: expected {lacking} .* found none") as caught:
        demo.require(which=find, find_module=find)

    assert caught.value.exit_code == 3


def test_torch_is_needed_only_where_it_is_measured():
    demo.require(which=lambda _: object(), find_module=lambda _: None, in_containers=True)


def typed(folder, runner):
    """Play the demo without measuring; return what `ci-perf` was told, by command."""
    shown: list[str] = []
    files.write(folder / demo.COMPARISON, a_comparison(*AS_PLANTED))
    programs = {**PROGRAMS, "ci-perf": (sys.executable, "-c", LEAVES_FILES)}
    shell = Shell(
        folder=folder, show=shown.append, environment=neutral(os.environ), programs=programs
    )
    demo.play(EXAMPLE, shell, lambda _: None, runner=runner)
    lines = (line.split() for line in shown)
    return {words[1]: words for words in lines if words[0] == "ci-perf"}


def test_what_is_measured_is_measured_where_the_demo_was_asked_to(tmp_path):
    runner = ("--runner", "docker", "--image", "app@sha256:1")

    told = typed(tmp_path, runner)

    assert [name for name, words in told.items() if set(runner) <= set(words)] == ["run", "check"]


def test_without_a_word_it_is_measured_here(tmp_path):
    assert not any("--runner" in words for words in typed(tmp_path, ()).values())


def test_the_demo_in_containers_asks_for_an_image_before_it_begins():
    line = ["--runner", "podman"]

    with pytest.raises(UsageError, match="--runner podman: expected an image, found none"):
        demo_command.demo_command.main(line, standalone_mode=False)


# The example


def test_the_planted_rows_belong_to_workloads_of_the_example():
    plan = suite.plan(EXAMPLE / "workloads", "smoke", root=EXAMPLE)

    assert {p.workload for p in result.PLANTED} < {w.id for w in plan.workloads}
    assert all(w.description for w in plan.workloads)


def test_each_change_becomes_one_commit_with_a_message_and_touches_the_package_only(repository):
    patches = sorted(str(patch) for patch in (repository / "changes").glob("*.patch"))
    git(repository, "am", "--quiet", *patches)

    reasons = asked(repository, "log", "--format=%b%x00", "HEAD~3..HEAD").split("\0")[:-1]
    changed = asked(repository, "diff", "--name-only", "HEAD~3").split()

    assert len(patches) == len(reasons) == 3
    assert all(len(reason.strip()) > 50 for reason in reasons)
    assert changed == [f"tiny_vision/{name}.py" for name in ("gallery", "images", "model")]


def test_the_results_of_a_run_leave_the_example_clean(repository):
    for name in (demo.RUN, demo.REPORT, demo.COMPARISON):
        (repository / name).touch()

    assert asked(repository, "status", "--porcelain") == ""


def test_the_readme_shows_a_workload_of_15_lines_as_it_is():
    workload = (EXAMPLE / "workloads" / "embed_images.py").read_text()

    assert len(workload.splitlines()) == 15
    assert f"```python\n{workload}```" in (EXAMPLE / "README.md").read_text()


def asked(folder: Path, *words):
    return subprocess.run(
        ["git", *words],
        cwd=folder,
        env=neutral(os.environ),
        check=True,
        capture_output=True,
        text=True,
    ).stdout
