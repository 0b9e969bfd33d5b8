"""`ci-perf judge`, as it is typed."""

import csv
import io
import json
from pathlib import Path

import pytest

from ci_perf.errors import ExitCode
from tests.projects import Project

RECORDED = Path(__file__).parent / "recorded"
SESSIONS = [[1.0, 1.001, 0.999], [1.002, 1.001, 1.003], [0.999, 0.998, 1.0]]
PAIRS = [[1.0, 1.1], [1.001, 1.1], [1.0, 1.102], [0.999, 1.1]]


@pytest.fixture
def project(tmp_path):
    """A folder with samples of which a workload is slower."""
    found = Project(tmp_path)
    samples(found, head=[1.1, 1.1], pairs=PAIRS)
    return found


def samples(project, **more):
    metric = {"unit": "s", "kind": "time"}
    workload = {"workload": "w", "metric": metric, "history": SESSIONS} | more
    (project.root / "samples.json").write_text(json.dumps({"workloads": [workload]}))


def test_judge_blames_what_its_pairs_confirm(project):
    done = project.run("judge", "samples.json")

    assert done.code == ExitCode.REGRESSED
    assert done.out.startswith("### ❌ ci_perf: 1 regression")
    assert "samples.json" in done.out


def test_judge_writes_every_form(project):
    def judged(form, *more):
        return project.run("judge", "samples.json", "--format", form, *more)

    comparison = json.loads(judged("json").out)
    assert (comparison["verdict"], comparison["exit_code"]) == ("regressed", 1)
    rows = list(csv.DictReader(io.StringIO(judged("csv").out)))
    assert [(row["workload"], row["code"]) for row in rows] == [("w", "confirmed")]
    assert "1 regression" in judged("terminal").out
    done = judged("markdown", "-o", "report.md")
    assert (done.code, done.out) == (ExitCode.REGRESSED, "")
    assert (project.root / "report.md").read_text() == judged("markdown").out


def test_what_is_only_predicted_is_shown_and_fails_where_that_is_asked_for(project):
    samples(project, head=[1.1, 1.1])
    done = project.run("judge", "samples.json")

    assert done.code == ExitCode.OK
    assert "unconfirmed" in done.out
    strict = project.run("judge", "samples.json", "--fail-on", "unconfirmed")
    assert strict.code == ExitCode.REGRESSED


def test_judge_reads_the_files_of_a_harness(project):
    days = [arg for day in (1, 2, 3) for arg in ("--base", RECORDED / f"asv_day{day}.json")]
    done = project.run("judge", "--from", "asv", *days, "--head", RECORDED / "asv_head.json")

    assert done.code == ExitCode.OK
    assert "speed.time_join" in done.out
    assert "asv_head.json: speed.track_length: left out: " in done.err


def test_files_that_a_harness_wrote_in_turns_confirm(project):
    def written(name, seconds):
        rows = [{"name": "f", "number_per_run": 1, "raw_times": [seconds]}]
        (project.root / name).write_text(json.dumps(rows))
        return name

    pairs = [
        arg
        for i in range(4)
        for arg in ("--pair", written(f"b{i}.json", 1.0), written(f"h{i}.json", 1.1 + i * 1e-4))
    ]
    done = project.run("judge", "--from", "torch", *pairs)

    assert done.code == ExitCode.REGRESSED
    assert "+10.0 %" in done.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "expected SAMPLES, or --from TOOL"),
        (["--base", "samples.json"], "--base, --head, --pair: expected --from TOOL"),
        (["--pair", "samples.json", "x.json"], "--base, --head, --pair: expected --from TOOL"),
        (["--from", "asv", "--head", "samples.json"], "--from asv: expected --base FILE and"),
        (["--from", "asv", "samples.json"], "and no SAMPLES"),
        (["gone.json"], "gone.json: expected a file, found nothing"),
        (["samples.json", "-o", "samples.json"], "would overwrite samples.json"),
        (
            ["--from", "asv", "--base", "samples.json", "--head", "samples.json"],
            "--from asv: samples.json: expected JSON that asv wrote, found: ",
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
