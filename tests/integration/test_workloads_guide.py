"""Every example of docs/workloads.md runs as it is printed there."""

import contextlib
import dataclasses
import importlib
import re
import sys
from pathlib import Path
from typing import Literal

import pytest
import torch

from ci_perf import suite
from ci_perf.errors import InvalidFileError
from ci_perf.system import files
from ci_perf.workload import Context, Workload, enter_unwatched
from tests.processes import run_python
from tests.runs import a_measured, a_run

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/workloads.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
WORKLOADS = [text for language, text in BLOCKS if language == "python" and "def build(" in text]
BY_HAND, PLOT = (
    text for language, text in BLOCKS if language == "python" and "def build(" not in text
)
SUITES = [text for language, text in BLOCKS if language == "toml"]
PARAMETERS: dict[str, dict[str, str | int]] = {
    "attention": {"tokens": 64},
    "parts": {},
}
FIRST = WORKLOADS[0]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The guide's examples as a user's workloads/, on sys.path as when a workload runs."""
    for name, text in zip(PARAMETERS, WORKLOADS, strict=True):
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in PARAMETERS:
        sys.modules.pop(name, None)


def build(name, *, phase=enter_unwatched, **parameters):
    given = {**PARAMETERS[name], **parameters}
    context = Context(device="cpu", parameters=given, seed=0, data_dir="data", phase=phase)
    torch.manual_seed(context.seed)  # as a worker does
    return importlib.import_module(name).build(context)


@pytest.mark.parametrize("name", PARAMETERS)
def test_each_example_builds_and_steps(folder, name):
    workload = build(name)
    workload.step()
    workload.step()

    assert workload.items_per_step > 1
    assert suite.describe(folder / f"{name}.py")


@pytest.mark.usefixtures("folder")
def test_the_first_example_is_short_and_counts_the_tokens_that_it_is_given():
    short, long = build("attention", tokens=8), build("attention", tokens=16)

    assert (short.items_per_step, long.items_per_step) == (64, 128)
    assert short.step().shape == (8, 4, 8, 32)
    assert len([line for line in FIRST.splitlines() if line.strip()]) < 15


@pytest.mark.usefixtures("folder")
def test_the_training_example_learns_and_names_each_part_of_every_step():
    entered: list[str] = []

    def noting(name):
        entered.append(name)
        return contextlib.nullcontext()

    workload = build("parts", phase=noting)
    losses = []
    for _ in range(20):  # five epochs of four batches
        workload.step()
        losses.append(workload.loss())

    assert losses[-1] < losses[0] / 2
    assert entered == 20 * ["data", "h2d", "forward", "backward", "optimizer"]
    assert set(entered) <= set(re.findall(r"`(\w+)`", GUIDE))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sorting:
    order: Literal["up", "down"] = "up"


def test_the_helper_of_the_guide_names_a_wrong_parameter_and_its_choices():
    helper = importlib.import_module("_parameters")
    wrong = "parameter 'order': expected one of 'up', 'down', found 'sideways'"

    with pytest.raises(ValueError, match=wrong):
        helper.read({"order": "sideways"}, Sorting)


@pytest.mark.usefixtures("folder")
def test_the_session_by_hand_runs_as_printed():
    names = {}
    exec(BY_HAND, names)

    assert names["workload"].items_per_step == 8 * 64


def test_losses_of_optimizers_are_drawn_into_one_plot(tmp_path):
    names = [f"train.optimizer={name}" for name in ("sgd", "adam", "rmsprop")]
    run = a_run(*(a_measured(name, 1e-3, losses=(2.0, 1.0, 0.5)) for name in names))
    files.write(tmp_path / "run.json", run)

    done = run_python("-c", PLOT, cwd=tmp_path, MPLCONFIGDIR=str(tmp_path))

    assert done.returncode == 0, done.stderr
    drawn, shown = ((folder / "losses.svg").read_text() for folder in (tmp_path, ROOT / "docs"))
    for label in (*names, "loss", "step"):
        assert f"<!-- {label} -->" in drawn
        assert f"<!-- {label} -->" in shown
    assert "](losses.svg)" in GUIDE


@pytest.mark.parametrize("text", SUITES, ids=["first", "limits", "protocol", "packages", "inputs"])
def test_each_piece_of_suite_toml_is_valid(folder, text):
    is_whole = "[suites" in text  # else it stands at the top of a file
    (folder / "suite.toml").write_text(text if is_whole else text + SUITES[0])
    (folder / "train.py").write_text((folder / "attention.py").read_text())

    planned = suite.plan(folder, "smoke", root=folder).workloads

    assert {Path(workload.file).stem for workload in planned} <= {"attention", "train"}


@pytest.mark.parametrize("given", [Context, Workload])
def test_the_guide_explains_every_field_in_a_table(given):
    explained = set(
        re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", GUIDE, re.MULTILINE)))
    )

    assert {field.name for field in dataclasses.fields(given)} <= explained


def test_the_first_suite_has_the_ids_that_the_guide_names(folder):
    (folder / "suite.toml").write_text(SUITES[0])

    planned = suite.plan(folder, "smoke", root=folder).workloads

    assert [workload.id for workload in planned] == ["attention.tokens=64", "attention.tokens=128"]
    assert all(f"`{workload.id}`" in GUIDE for workload in planned)


def test_two_entries_with_the_same_id_need_a_name_as_the_guide_says(folder):
    entry = '\n[[suites.smoke.workloads]]\nworkload = "attention"\n'
    (folder / "suite.toml").write_text(entry * 2)
    with pytest.raises(InvalidFileError, match="`name`"):
        suite.plan(folder, "smoke", root=folder)

    (folder / "suite.toml").write_text(entry + entry + 'name = "again"\n')
    planned = suite.plan(folder, "smoke", root=folder).workloads

    assert [workload.id for workload in planned] == ["attention", "again"]
