"""`ci-perf judge`, as it is typed."""

import csv
import io
import json
import random
from pathlib import Path

import pytest

from ci_perf.errors import ExitCode
from tests.projects import Project

RECORDED = Path(__file__).parent / "recorded"
SESSIONS = [[1.0, 1.001, 0.999], [1.002, 1.001, 1.003], [0.999, 0.998, 1.0]]
PAIRS = [[1.0, 1.1], [1.001, 1.1], [1.0, 1.102], [0.999, 1.1], [1.0, 1.1], [1.001, 1.101]]


@pytest.fixture
def project(tmp_path):
    """A folder with samples of which a workload is slower."""
    found = Project(tmp_path)
    samples(found, head=[1.1, 1.1], pairs=PAIRS)
    return found


def samples(project, file="samples.json", **more):
    metric = {"unit": "s", "kind": "time"}
    workload = {"workload": "w", "metric": metric, "history": SESSIONS} | more
    (project.root / file).write_text(json.dumps({"workloads": [workload]}))


def test_judge_writes_every_form(project):
    def judged(form, *more):
        return project.run("judge", "samples.json", "--format", form, *more)

    comparison = json.loads(judged("json").out)
    assert (comparison["verdict"], comparison["exit_code"]) == ("regressed", 1)
    rows = list(csv.DictReader(io.StringIO(judged("csv").out)))
    assert [(row["workload"], row["code"]) for row in rows] == [("w", "beyond_limit"), ("w", "")]
    assert "❌ 1 regressed" in judged("terminal").out
    done = judged("markdown", "-o", "report.md")
    assert (done.code, done.out) == (ExitCode.REGRESSED, "")
    assert (project.root / "report.md").read_text() == judged("markdown").out


def test_what_is_only_predicted_is_shown_and_fails_where_that_is_asked_for(project):
    samples(project, head=[1.1, 1.1])
    done = project.run("judge", "samples.json")

    assert done.code == ExitCode.NO_ANSWER
    assert "likely slower" in done.out
    strict = project.run("judge", "samples.json", "--fail-on", "likely")
    assert strict.code == ExitCode.REGRESSED


def test_judge_reads_the_files_of_a_harness(project):
    days = [arg for day in (1, 2, 3) for arg in ("--base", RECORDED / f"asv_day{day}.json")]
    done = project.run("judge", "--from", "asv", *days, "--head", RECORDED / "asv_head.json")

    assert done.code == ExitCode.NO_ANSWER  # three of them look slower than their three days
    assert "speed.time_join" in done.out
    assert "asv_head.json: speed.track_length: left out: " in done.err


def test_files_that_a_harness_wrote_in_turns_confirm(project):
    def written(name, seconds):
        rows = [{"name": "f", "number_per_run": 1, "raw_times": [seconds]}]
        (project.root / name).write_text(json.dumps(rows))
        return name

    pairs = [
        arg
        for i in range(6)
        for arg in ("--pair", written(f"b{i}.json", 1.0), written(f"h{i}.json", 1.1 + i * 1e-4))
    ]
    done = project.run("judge", "--from", "torch", *pairs)

    assert done.code == ExitCode.REGRESSED
    assert "+10.0\N{NO-BREAK SPACE}%" in done.out


def in_turns(project, workload, centre):
    """Write a file of one workload whose pairs differ by 2.6 % around `centre`."""
    noise = random.Random(1)
    pairs = [[1.0, noise.gauss(centre, 0.026)] for _ in range(18)]
    name = f"{workload}.json"
    samples(project, name, workload=workload, history=[], pairs=pairs)
    return name


def test_files_that_are_judged_together_share_the_chance_of_a_false_alarm(project):
    slower = in_turns(project, "w", 1.022)
    others = [in_turns(project, f"w{number}", 1.0) for number in range(19)]
    together = project.run("judge", slower, *others, "--format", "json")
    alone = project.run("judge", slower, "--format", "json")

    assert alone.code == ExitCode.REGRESSED
    assert together.code == ExitCode.OK
    rows = json.loads(together.out)["rows"]
    assert sorted(row["workload"] for row in rows) == sorted(["w", *(f"w{i}" for i in range(19))])
    verdict = next(row["verdict"] for row in rows if row["workload"] == "w")
    assert verdict == "inconclusive", "twenty suspects have a twentieth of alpha each"


def test_files_that_are_judged_together_say_what_one_file_with_all_of_it_says(project):
    files = [in_turns(project, f"w{number}", 1.0 + number / 20) for number in range(4)]
    whole = [
        workload
        for file in files
        for workload in json.loads((project.root / file).read_text())["workloads"]
    ]
    (project.root / "whole.json").write_text(json.dumps({"workloads": whole}))

    one = project.run("judge", "whole.json", "--format", "csv")
    several = project.run("judge", *files, "--format", "csv")
    report = project.run("judge", *files).out
    assert (one.code, one.out) == (several.code, several.out)
    assert "w0.json, w1.json, w2.json and 1 more" in report


def test_a_workload_of_two_files_is_refused_with_the_name_of_both(project):
    samples(project, "other.json", head=[1.0, 1.0])

    done = project.run("judge", "samples.json", "other.json")

    assert (done.code, done.out) == (ExitCode.USAGE, "")
    assert "other.json: expected workloads that no other file holds, found 'w'" in done.err
    assert "as in samples.json; rename it in one of the files" in done.err


def test_two_files_may_hold_two_metrics_of_one_workload(project):
    metric = {"unit": "byte", "kind": "exact"}
    samples(project, "memory.json", metric=metric, history=[[1e9]], head=[1e9])

    done = project.run("judge", "samples.json", "memory.json", "--format", "csv")

    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [(row["workload"], row["metric"]) for row in rows] == [
        ("w", "step_time_s"),
        ("w", "items_per_s"),
        ("w", "peak_allocated_bytes"),
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "expected SAMPLES, or --from TOOL"),
        (["--base", "samples.json"], "--base, --head, --pair: expected --from TOOL"),
        (["--pair", "samples.json", "x.json"], "--base, --head, --pair: expected --from TOOL"),
        (["--from", "asv", "--head", "samples.json"], "--from asv: expected --base FILE and"),
        (["--from", "asv", "samples.json"], "and no SAMPLES"),
        (["gone.json"], "gone.json: this file does not exist"),
        (["samples.json", "-o", "samples.json"], "would overwrite samples.json"),
        (
            ["--from", "asv", "--base", "samples.json", "--head", "samples.json"],
            "--from asv: samples.json: expected results of this format, found: ",
        ),
    ],
)
def test_what_cannot_be_judged_is_wrong_use(project, arguments, said):
    done = project.run("judge", *arguments)

    assert (done.code, done.out) == (ExitCode.USAGE, "")
    assert said in done.err


def test_a_wrong_number_is_named_with_its_place(project):
    samples(project, head=[1.1, [1.1, -1]])
    done = project.run("judge", "samples.json")

    assert done.code == ExitCode.USAGE
    assert "$.workloads[0].head[1][1]: expected float >= 0.0, found -1" in done.err
