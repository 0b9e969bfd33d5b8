"""Each way to get a slower program past a reviewer: what every report says above the fold."""

import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from ci_perf import suite
from ci_perf.baselines import layout, summaries
from ci_perf.errors import ExitCode
from ci_perf.gate import compare as gate_compare
from ci_perf.gate import own_gate
from ci_perf.gate.commit_suite import RepositoryFolders
from ci_perf.judging import compare, summarise
from ci_perf.model.run import Pair, Paired, Source
from ci_perf.program.tree_sources import FolderTree, GitTree
from ci_perf.report import headline, markdown, page, terminal
from tests import accepting, headlines, repositories
from tests.comparisons import an_interleaved
from tests.runs import CPU, a_measured, a_process, a_run

SUITE = """
[suites.smoke]
limits = { step_time_s = { limit = 0.05 } }
"""
LIMITS = "limits = { step_time_s = { limit = 0.05 } }"
ENTRY = '[[suites.smoke.workloads]]\nworkload = "{}"\n'
# Launches of the same code are never quite equal.
JITTER = (0.999, 1.001, 1.0, 1.002, 0.998, 1.0)
STEP_S, OPERATORS = 0.01, 1000


def suite_toml(*workloads, settings=LIMITS):
    return "\n".join([SUITE.replace(LIMITS, settings), *map(ENTRY.format, workloads)])


def a_paired_run(*, factor, operators=OPERATORS, own_file=False, workloads=("w1", "w2"), **more):
    """Both workloads, each launched in six pairs, whose head takes `factor` times as long."""
    pairs = tuple(
        Pair(
            first="base",
            base=a_process(step_s=STEP_S * jitter, operators=OPERATORS),
            head=a_process(step_s=STEP_S * factor / jitter, operators=operators),
        )
        for jitter in JITTER
    )
    times = [STEP_S * factor * jitter for jitter in JITTER]
    return a_run(
        *(a_measured(name, *times, operators=operators) for name in workloads),
        id="feedfacefeed",
        interleaved=an_interleaved(suspects=len(workloads), **more),
        paired=tuple(
            Paired(workload=name, file="base" if own_file else "head", pairs=pairs)
            for name in workloads
        ),
    )


@dataclass(frozen=True)
class Attempt:
    """What the author writes, what a run then measures, and how the report must end and begin.

    ``removed`` are files. ``accepts`` makes the slow run the baseline.
    """

    name: str
    says: tuple[str, ...]
    code: int = ExitCode.REGRESSED
    suite: str = suite_toml("w1", "w2")
    run: dict[str, object] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    accepts: bool = False
    workload: str = "def build(context): ...\n"


ATTEMPTS = (
    Attempt(
        name="loosens the limits",
        suite=suite_toml("w1", "w2", settings="limits = { step_time_s = { limit = 0.9 } }"),
        says=("limit raised: w1 CPU time of a step 5 % → 90 %, w1 step time 5 % → 90 %",),
    ),
    Attempt(
        name="switches the gates off",
        suite=suite_toml("w1", "w2", settings="limits = { step_time_s = { gate = false } }"),
        says=("gate switched off: w1 CPU time of a step, w1 step time",),
    ),
    Attempt(
        name="never fails",
        suite=suite_toml("w1", "w2", settings=f'{LIMITS}\nfail_on = "never"'),
        says=("fail_on milder: proven → never",),
    ),
    Attempt(
        name="accepts its own regression",
        accepts=True,
        code=ExitCode.OK,
        says=("own regression accepted: w1 step time 10.0 → 20.0 ms (+100 %), because: Worth it.",),
    ),
    Attempt(
        name="removes a workload and its baseline",
        suite=suite_toml("w1"),
        removed=("w2",),
        run={"workloads": ("w1",), "factor": 1.0},
        code=ExitCode.OK,
        says=("workload removed: w2", "baseline removed: w2"),
    ),
    Attempt(
        name="removes the baselines alone",
        removed=("w1", "w2"),
        says=("baseline removed: w1, w2",),
    ),
    Attempt(name="removes the suite", suite="[suites]\n", says=("suite removed: smoke",)),
    Attempt(
        name="does half the work",
        workload="def build(context): 'half'\n",
        run={"factor": 0.5, "operators": 500, "own_file": True},
        code=ExitCode.OK,
        says=("workload file changed (numbers of different work): w1, w2",),
    ),
    Attempt(
        name="does no work",
        workload="def build(context): 'nothing'\n",
        run={"factor": 0.001, "operators": 10, "own_file": True},
        code=ExitCode.OK,
        says=("less work: w1 operators per step 1,000 → 10 (", "faster: w1 "),
    ),
)


@pytest.fixture(scope="module")
def main(tmp_path_factory):
    """A repository with two workloads and their baselines on main."""
    git = repositories.init(tmp_path_factory.mktemp("main") / "project")
    folder = git.root / "workloads"
    folder.mkdir()
    (folder / "suite.toml").write_text(suite_toml("w1", "w2"))
    for name in ("w1", "w2"):
        (folder / f"{name}.py").write_text(Attempt.workload)
    before = [
        a_measured(name, *(STEP_S * j for j in JITTER), operators=OPERATORS)
        for name in ("w1", "w2")
    ]
    accepting.accepted(git.root / "baselines", a_run(*before, id="0ldba5e11ne0"))
    git.commit()
    return git


def judged(main, folder, attempt):
    """Judge what the attempt measures by the rules of main, with what it does to the gate."""
    shutil.copytree(main.root, folder / "project")
    root, run = folder / "project", a_paired_run(**({"factor": 2.0} | attempt.run))
    baselines = root / "baselines"
    (root / "workloads/suite.toml").write_text(attempt.suite)
    for name in ("w1", "w2"):
        (root / "workloads" / f"{name}.py").write_text(attempt.workload)
    if attempt.accepts:
        accepting.accepted(baselines, run, reason="Worth it.")
        before, machine = main.root / "baselines", run.environment.hard
        accepted = summaries.find_accepted_since(baselines, before, machine, "smoke")
        run = a_paired_run(factor=2.0, accepted=accepted)
    for name in attempt.removed:
        layout.path(baselines, CPU, "smoke", name).unlink()
    rules = suite.plan(main.root / "workloads", "smoke", root=main.root)
    head = summarise.run(run, label="run.json")
    base = summaries.baselines(baselines, CPU, "smoke")
    comparison = compare.compare(base, head, limits=rules.limits, fail_on=rules.fail_on)
    return own_gate.note(
        comparison,
        base=GitTree(main.root, "main"),
        head=FolderTree(root),
        folder=Path("workloads"),
        edits=summaries.edits(main.root / "baselines", baselines, "smoke"),
    )


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name)
def test_what_an_author_does_to_the_gate_is_named_before_the_rows(main, tmp_path, attempt):
    comparison = judged(main, tmp_path, attempt)
    drawn = re.sub(r"<[^>]+>", "", page.render(comparison).partition("To look at")[0])
    shown = {
        "markdown": markdown.render(comparison).partition("| Workload")[0].replace("`", ""),
        "terminal": terminal.render(comparison, width=400, color=False),
        "page": drawn,
    }

    assert comparison.exit_code == attempt.code
    # A pass with another gate is no plain pass.
    first_line = headline.render(comparison)
    is_pass = attempt.code == ExitCode.OK
    assert first_line.startswith(headlines.GATE_CHANGED) == is_pass
    assert "No action needed" not in markdown.render(comparison)
    for form, text in shown.items():
        said = " ".join(text.split())
        assert "This pull request changes the gate" in said, form
        for sentence in attempt.says:
            assert sentence in said, form


def test_the_same_commit_changes_nothing(main):
    tree, run = FolderTree(main.root), a_paired_run(factor=1.0)
    comparison = accepting.against(main.root / "baselines", run)

    noted = own_gate.note(comparison, base=tree, head=tree, folder=Path("workloads"), edits=())

    assert noted == comparison


def a_tested_run(*nodes):
    """A run of these tests of pytest, and of a workload with a parameter of the same name."""
    tests = [
        msgspec.structs.replace(
            a_measured(f"test{number}", STEP_S, parameters={"node": node}), launch="fork"
        )
        for number, node in enumerate(nodes)
    ]
    return a_run(*tests, a_measured("w1", STEP_S, parameters={"node": "w1.py"}))


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ({}, []),
        ({"b/test_x.py": "less"}, ["b/test_x.py"]),
        ({"b/conftest.py": "added"}, ["b/conftest.py"]),
        ({"conftest.py": "added"}, ["conftest.py"]),
        ({"pytest.ini": "[pytest]\naddopts = -p patches"}, ["pytest.ini"]),
        ({"conftest.py": "added", "c/conftest.py": "elsewhere"}, ["conftest.py"]),
        ({"shared/real.py": "less"}, ["b/test_link.py"]),
        ({"b/helpers.py": "any code"}, []),
        ({"new/test_y.py": "new tests", "new/conftest.py": "of these alone"}, []),
    ],
)
def test_a_changed_file_of_a_test_is_named(tmp_path, files, named):
    git = repositories.init(tmp_path / "project")
    for name in ("b/test_x.py", "shared/real.py"):
        (git.root / name).parent.mkdir()
        (git.root / name).write_text("work")
    (git.root / "b/test_link.py").symlink_to("../shared/real.py")
    git.commit()
    for name, text in files.items():
        (git.root / name).parent.mkdir(exist_ok=True)
        (git.root / name).write_text(text)
    tests = own_gate.list_test_files(
        a_tested_run("b/test_x.py::a[1/2]", "b/test_link.py::a", "new/test_y.py::a")
    )

    found = own_gate.find_changed(tests, GitTree(git.root, "main"), FolderTree(git.root))

    assert found == named


@pytest.mark.parametrize("name", ["helpers.py", "unit/work.py", "torch.py"])
def test_a_changed_module_beside_tests_is_named(tmp_path, name):
    git = repositories.init(tmp_path / "project")
    for file in ("helpers.py", "unit/work.py", "unit/test_x.py", "unit/test_other.py"):
        (git.root / "tests" / file).parent.mkdir(exist_ok=True, parents=True)
        (git.root / "tests" / file).write_text("work")
    (git.root / "product.py").write_text("slow")
    git.commit()
    for file in (f"tests/{name}", "tests/unit/test_other.py", "product.py"):
        (git.root / file).write_text("less")
    trees = GitTree(git.root, "main"), FolderTree(git.root)

    assert own_gate.find_changed(["tests/unit/test_x.py"], *trees) == [f"tests/{name}"]


def test_a_conftest_above_the_folder_of_a_project_is_named(tmp_path):
    git = repositories.init(tmp_path / "repository")
    for file in ("a/b/test_x.py", "conftest.py", "a/pytest.ini"):
        (git.root / file).parent.mkdir(exist_ok=True, parents=True)
        (git.root / file).write_text("work")
    git.commit()
    for file in ("conftest.py", "a/pytest.ini"):
        (git.root / file).write_text("less")
    source = Source(commit=git.ask("rev-parse", "main"), branch="main", dirty=False)
    run = msgspec.structs.replace(
        a_tested_run("test_x.py::a"), interleaved=an_interleaved(source=source)
    )
    folders = RepositoryFolders(root=git.root / "a/b")

    said = gate_compare.with_baselines(run, folders, label="", fail_on=None, notify=lambda _: None)
    assert [each.name for each in said.gate_changes] == ["../../conftest.py", "../pytest.ini"]


def test_the_files_of_a_project_in_a_hidden_folder_are_found(tmp_path):
    git = repositories.init(tmp_path / "project")
    (git.root / ".ci").mkdir()
    file = git.root / ".ci/test_x.py"
    file.write_text("work")
    git.commit()
    file.write_text("less")
    trees = GitTree(git.root, "main"), FolderTree(git.root)

    assert own_gate.find_changed(["test_x.py"], *trees, folder=Path(".ci")) == ["test_x.py"]


@pytest.mark.parametrize("node", ["/etc/passwd", "../../etc/passwd", "\0", "x/" * 500_000])
def test_a_node_that_a_stranger_invents_does_no_harm(tmp_path, node):
    tree = FolderTree(tmp_path)

    found = own_gate.find_changed(own_gate.list_test_files(a_tested_run(node)), tree, tree)

    assert len(found) <= 101
    assert "conftest.py" not in found
