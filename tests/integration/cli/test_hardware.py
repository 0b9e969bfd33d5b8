"""`ci-perf hardware` on files of runs: what it prints and writes, and how it ends."""

import json

import pytest

from ci_perf.system import files
from tests.hardware import A100, H100, PRICES
from tests.projects import Project
from tests.runs import a_failed, a_run


@pytest.fixture
def project(tmp_path):
    for name, run in {"a100": A100, "h100": H100}.items():
        files.write(tmp_path / f"{name}.json", run)
    (tmp_path / "prices.toml").write_text(PRICES)
    return Project(tmp_path)


def test_tables_page_and_picture_come_of_one_call(project):
    wanted = ("--page", "value.html", "--picture", "value.svg", "--format", "json")

    done = project.run("hardware", "a100.json", "h100.json", "--prices", "prices.toml", *wanted)

    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert [each["name"] for each in document["classes"]] == [
        "nvidia-a100",
        "h100-reserved",
        "nvidia-h100",
    ]
    assert "Fastest" in (project.root / "value.html").read_text()
    assert (project.root / "value.svg").read_text().startswith("<svg")


def test_tables_in_a_file_are_markdown_unless_another_form_is_asked_for(project):
    runs = ("a100.json", "h100.json", "--prices", "prices.toml")
    project.run("hardware", *runs, "-o", "value.md")
    project.run("hardware", *runs, "-o", "value.txt", "--format", "terminal")

    assert (project.root / "value.md").read_text().startswith("**Fastest: `h100-reserved`")
    assert (project.root / "value.txt").read_text().startswith("Fastest: h100-reserved")


def test_a_price_of_nothing_is_wrong_use_and_writes_nothing(project):
    (project.root / "prices.toml").write_text(PRICES.replace("2.0", "0"))

    done = project.run(
        "hardware", "a100.json", "h100.json", "--prices", "prices.toml", "--page", "value.html"
    )

    assert done.code == 2
    assert "prices.toml: $.price.nvidia-a100.per_hour: expected" in done.err
    assert not (project.root / "value.html").exists()


def test_nothing_in_common_is_no_answer(project):
    files.write(project.root / "failed.json", a_run(a_failed("mlp"), id="failed"))

    done = project.run("hardware", "a100.json", "failed.json")

    assert done.code == 3
    assert done.out.startswith("No workload was measured on all machines")
