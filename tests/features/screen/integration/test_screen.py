"""What a job without torch or a GPU says of a change: a real repository, and a real record."""

import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from ci_perf import suite
from ci_perf.baselines import layout
from ci_perf.errors import UsageError
from ci_perf.features.screen import answers, shared_files
from ci_perf.features.screen.answers import ScreenOptions
from ci_perf.model.program import Program, digest
from ci_perf.model.suite import Setup
from ci_perf.system import files
from ci_perf.worktree import merge_base
from tests import repositories
from tests.projects import NAP_SETTINGS, Project

WORKLOAD = '''
"""Reads a file of data, and a variable, and imports a module of the standard library."""
import colorsys, os
from pathlib import Path
from ci_perf.workload import Workload
from product import net
FLAG = os.environ.get("FLAG"), os.environ.get("UNSET")
def step():
    net.work(Path(__file__).parents[1].joinpath("data/labels.txt").read_text())
'''
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 12\n"
IMAGE = '[container]\nimage = "octo/perf@sha256:{}"\n'
TOLD = {"FLAG": "1"}


def write(root, path, text):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A repository whose base has an accepted session of today, with its record."""
    git = repositories.init(tmp_path_factory.mktemp("screen") / "project")
    project = Project(git.root)
    project.workload("nap", WORKLOAD)
    project.suite("nap", settings=NAP_SETTINGS, extra=IMAGE.format("a" * 64), device="cpu")
    for path, text in {
        "product/__init__.py": "",
        "product/net.py": "def work(text):\n    return sorted(text)\n",
        "data/labels.txt": "cat dog",
        "model.bin": POINTER.format("a" * 64),
        "native/fast.c": "int one(void) { return 1; }\n",
        "uv.lock": "torch 2.9\n",
        "requirements.txt": "torch\n",
        ".github/workflows/perf.yml": "on: pull_request\nrun: sh prepare.sh && python prepare.py\n",
        "prepare.py": "from steps import unpack\n",
        "steps/unpack.py": "import runpy, steps.deeper\nrunpy.run_path('bin/fetch')\n",
        "steps/deeper/__init__.py": "from . import pins as p\n",
        "steps/deeper/pins.py": "TORCH = '2.9'\n",
        "bin/fetch": "#!/usr/bin/env python\nimport mirrors\n",
        "prepare.sh": "python generate.py && python -m tools.load\n",
        "README.md": "A product.\n",
        "vendor/lib/.gitkeep": "",
    }.items():
        write(git.root, path, text)
    git.commit()
    git.ask("update-index", "--add", "--cacheinfo", f"160000,{'b' * 40},vendor/other")
    (git.root / "vendor/other").mkdir()
    git.ask("commit", "--quiet", "--message=a submodule")
    done = project.run("run", "-o", "../run.json", FLAG="1", CI_PERF_RUN_ALL="1")
    assert done.code == 0, done.err
    done = project.run("accept", "../run.json", "--reason", "first", "--force")
    assert done.code == 0, done.err
    git.commit()
    return git.root


@pytest.fixture
def git(measured, tmp_path):
    """A branch of it that is checked out, without a change."""
    shutil.copytree(measured, tmp_path / "project")
    git = repositories.Repository(tmp_path / "project")
    git.ask("switch", "--quiet", "--create", "branch")
    return git


def find_record(root):
    (file,) = root.glob("baselines/*/smoke/programs/nap.json")
    return file


def find_variables(root, *, folder="*", **more):
    """Tell each variable that the launch has read, as a workflow that fixes all of them."""
    record = next(root.glob(f"baselines/{folder}/smoke/programs/nap.json"))
    recorded = json.loads(record.read_text())["variables"]
    told = {name: os.environ[name] for name in recorded.keys() & os.environ.keys()}
    return told | TOLD | more


def screen(root, *, variables=None, now=None, machine="", suite="smoke", **more):
    options = ScreenOptions(
        root=root,
        workloads=root / "workloads",
        baselines=root / "baselines",
        suite=suite,
        machine=machine,
        variables=find_variables(root) if variables is None else variables,
        **{"against": "main"} | more,
    )
    return answers.screen(options, now=now or datetime.now(UTC), notify=print)


def commit(git, **changes):
    """Commit texts of files; None removes one."""
    for path, text in changes.items():
        if text is None:
            (git.root / path).unlink()
        else:
            write(git.root, path, text)
    return git.commit()


def explain(screened):
    return " ".join(touched.detail for touched in screened.workloads.touched)


@pytest.mark.parametrize(
    "changes",
    [
        {"README.md": "A better product.\n"},
        {"docs/more.md": "More.\n", "LICENSE": "Yours.\n"},
        {"product/other.py": "1\n"},
        {"product/net.py": "# a comment\ndef work(text):\n    return sorted(text)\n"},
    ],
    ids=str,
)
def test_a_change_that_no_workload_can_see_asks_for_no_machine(git, changes):
    commit(git, **changes)

    screened = screen(git.root)

    assert explain(screened) == ""
    assert (screened.word, len(screened.workloads.same)) == ("same", 1)
    (row,) = screened.comparison.rows
    assert (row.code.value, screened.comparison.exit_code) == ("same_program", 0)
    assert row.same.believed


MUTANTS = {
    "source": ({"product/net.py": "def work(text):\n    return text\n"}, "product/net.py differs"),
    "c": ({"native/fast.c": "int one(void) { return 2; }\n"}, "native/fast.c differs"),
    "lock file": ({"uv.lock": "torch 2.10\n"}, "uv.lock differs"),
    "dependency": ({"requirements.txt": "torch<3\n"}, "requirements.txt differs"),
    "new dependency": ({"pyproject.toml": "[project]\ndependencies = ['a']\n"}, "pyproject.toml"),
    "data": ({"data/labels.txt": "cat fox"}, "data/labels.txt differs"),
    "lfs": ({"model.bin": POINTER.format("b" * 64)}, "model.bin differs"),
    "attributes": ({".gitattributes": "*.txt text eol=crlf\n"}, ".gitattributes differs"),
    "workflow": ({".github/workflows/perf.yml": "on: push\n"}, "perf.yml differs"),
    "script of a workflow": ({"prepare.py": "1\n"}, "what it runs, names it"),
    "module of a script": ({"tools/load.py": "1\n"}, "tools/load.py differs, and a workflow"),
    "module of a Python script": ({"steps/unpack.py": "1\n"}, "unpack.py differs, and a workflow"),
    "module of a package": ({"steps/deeper/pins.py": None}, "pins.py differs, and a workflow"),
    "module of a nameless script": ({"mirrors.py": "1\n"}, "mirrors.py differs, and a workflow"),
    "start of a package": ({"tools/__main__.py": "1\n"}, "__main__.py differs, which may run"),
    "file of a file of a workflow": ({"deps/base.txt": "torch<3\n"}, "deps/base.txt differs"),
    "script of a script of a workflow": ({"generate.py": "1\n"}, "generate.py differs, and a"),
    "script of a script": ({"tools/build.sh": "make fast\n"}, "tools/build.sh differs"),
    "makefile": ({"native/Makefile": "all:\n\ttrue\n"}, "native/Makefile differs"),
    "start of Python": ({"product/all.pth": "import os\n"}, "product/all.pth differs"),
    "action": ({"ci/action.yml": "runs: {}\n"}, "ci/action.yml differs"),
    "shadowed module": ({"colorsys.py": ""}, "colorsys.py is new"),
    "shadowed package": ({"product.py": ""}, "product.py is new"),
    "ignored": ({".gitignore": "data/\n"}, ".gitignore differs"),
    "removed": ({"data/labels.txt": None}, "data/labels.txt differs"),
    "renamed": ({"product/net.py": None, "product/net2.py": "1"}, "is not there any more"),
}


@pytest.mark.parametrize(("changes", "words"), MUTANTS.values(), ids=MUTANTS)
def test_a_change_of_what_may_be_used_is_launched(git, changes, words):
    commit(git, **changes)

    screened = screen(git.root)

    assert screened.word == "launch"
    assert words in explain(screened)
    assert screened.comparison is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("processes = 2", "processes = 3"),
        ("a" * 64, "b" * 64),
        ("[suites.smoke]", '[setup]\ncommand = "sh build.sh"\n[suites.smoke]'),
        ("[suites.smoke]", '[suites.smoke]\nfresh = "9000h"'),
    ],
    ids=["protocol", "image", "setup", "fresh"],
)
def test_another_suite_is_launched(git, old, new):
    text = (git.root / "workloads/suite.toml").read_text()
    assert old in text
    commit(git, **{"workloads/suite.toml": text.replace(old, new)})

    assert "suite.toml differs" in explain(screen(git.root))


def test_another_suite_is_launched_through_a_link(git):
    git.ask("switch", "--quiet", "main")
    (git.root / "workloads").rename(git.root / "real")
    (git.root / "workloads").symlink_to("real")
    git.commit()
    git.ask("switch", "--quiet", "--force-create", "branch")
    text = (git.root / "real/suite.toml").read_text()
    commit(git, **{"real/suite.toml": text.replace("processes = 2", "processes = 3")})

    assert "real/suite.toml differs" in explain(screen(git.root))


def test_a_submodule_that_differs_is_launched_though_git_was_told_to_ignore_it(git):
    git.ask("update-index", "--cacheinfo", f"160000,{'c' * 40},vendor/other")
    git.ask("commit", "--quiet", "--message=another one")
    git.ask("config", "submodule.vendor/other.ignore", "all")
    git.ask("config", "diff.ignoreSubmodules", "all")

    assert explain(screen(git.root)) == "the submodule vendor/other differs"


def test_what_a_setup_may_read_is_launched(git):
    commit(git, **{"all.py": "1\n"})
    start = merge_base.find(git.root, "main")
    plan = suite.plan(git.root / "workloads", "smoke", root=git.root)
    workflows = shared_files.read_workflows(start)

    def find(setup):
        with_setup = msgspec.structs.replace(plan, setup=Setup(command=setup))
        return shared_files.find_difference(start, with_setup, workflows)

    assert find("") == ""
    assert find("make") == "all.py differs, and `setup` may read it"


ROUNDABOUT = {
    "behind a link": "tools/build_all.py",
    "in another shell": "tools/fetch.py",
    "in another language": "tools/pins.py",
    "in a task": "tools/mirrors.py",
    "by a glob": "steps/any.py",
    "by an expression": "steps/deep/end_of_x86.py",
    "by a module": "parts/load_cuda.py",
    "by Python": "kinds/nightly.py",
    "by a build": "generate.py",
    "of another service": "unpack.py",
    "a task": "tasks.py",
}


@pytest.mark.parametrize("script", ROUNDABOUT.values(), ids=ROUNDABOUT)
def test_a_script_that_a_workflow_runs_in_a_roundabout_way_is_launched(tmp_path, script):
    git = repositories.init(tmp_path / "project")
    (git.root / "prepare.py").symlink_to("tools/build_all.py")
    lines = [
        *("python prepare.py", "zsh all.zsh", "invoke load", "node page.js"),
        'for f in steps/*.py; do python "$f"; done',
        'python "$GITHUB_WORKSPACE"/steps/${{ inputs.kind }}/end_of_"$ARCH".py',
        "python -m parts.load_$device",
    ]
    texts = {
        **dict.fromkeys(ROUNDABOUT.values(), "1\n"),
        ".buildkite/pipeline.yml": "steps:\n- command: python unpack.py\n",
        ".github/workflows/run.yml": "".join(f"- run: {line}\n" for line in lines),
        "all.zsh": "python tools/fetch.py\n",
        "csrc/CMakeLists.txt": "execute_process(COMMAND python generate.py)\n",
        "page.js": "require('child_process').exec('python tools/pins.py')\n",
        "tasks.py": "from tools import mirrors\nrunpy.run_path(f'kinds/{chosen}.py')\n",
        "workloads/nap.py": WORKLOAD,
    }
    commit(git, **texts)
    git.ask("switch", "--quiet", "--create", "branch")
    commit(git, **{script: "2\n"})

    said = explain(screen(git.root, variables=TOLD, suite=""))

    named = "and a workflow, or what it runs, names it"
    unnamed = "which may run although nobody names it"
    assert said == f"{script} differs, {unnamed if script == 'tasks.py' else named}"


GLOBS = {
    "for f in *.py": True,
    "python ./[0-9]*.py": True,
    "python $(ls steps/**/*.py)": True,
    "python steps/$(cat *.txt).py": True,
    "for f in ./**/*; do sh run $f; done": True,
    "for f in a [0-9]*; do sh run $f; done": True,
    'for f in "$STEPS"/*\n  do sh run $f; done': True,
    'python "$name".py': False,
    "for f in $FILES; do sh run $f; done": False,
    "make a * b": False,
}


@pytest.mark.parametrize(("line", "is_named"), GLOBS.items(), ids=GLOBS)
def test_a_script_that_a_glob_without_letters_reaches_is_launched(tmp_path, line, is_named):
    git = repositories.init(tmp_path / "project")
    workflow = f"- run: |\n  {line}\n"
    script = "steps/deep/01_any.py"
    commit(git, **{".github/workflows/run.yml": workflow, script: "1\n", "workloads/nap.py": ""})
    git.ask("switch", "--quiet", "--create", "branch")
    commit(git, **{script: "2\n"})

    said = explain(screen(git.root, variables=TOLD, suite=""))

    assert (f"{script} differs, and a workflow, or what it runs, names it" in said) is is_named


def test_a_record_that_the_head_has_forged_is_launched(git):
    record = json.loads(find_record(git.root).read_text())
    del record["paths"]["product/net.py"]
    find_record(git.root).write_text(json.dumps(record))
    commit(git, **{"product/net.py": "def work(text):\n    return text\n"})

    assert "programs/nap.json differs" in explain(screen(git.root))


def change_base(git, change):
    """Change the record of the base itself, and begin another branch with a document."""
    git.ask("switch", "--quiet", "main")
    program = files.read(find_record(git.root), Program)
    layout.write_program(find_record(git.root), change(program))
    git.commit()
    git.ask("switch", "--quiet", "--force-create", "branch")
    commit(git, **{"README.md": "Better.\n"})


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"settings": "1" * 16}, "its settings, or the version of ci_perf"),
        ({"settings": ""}, "its settings, or the version of ci_perf"),
        ({"run": "another"}, "the base has no record of its program"),
        ({"obstacles": ("it opens a socket",)}, "it opens a socket"),
        ({"paths": {"product/net.py": f"code {'1' * 40}"}}, "the record is not of the base"),
        ({"variables": {"NEW": digest(b"1")}}, "it read the variable NEW: tell its value"),
        ({"variables": {"pull_request": ""}}, "pull_request, which a workflow names"),
    ],
    ids=str,
)
def test_a_record_that_proves_nothing_here_is_launched(git, fields, words):
    change_base(git, lambda program: msgspec.structs.replace(program, **fields))

    assert words in explain(screen(git.root))


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"FLAG": "2"}, "the variable FLAG, which has another value now"),
        ({"FLAG": ""}, "the variable FLAG, which has another value now"),
        ({"UNSET": "1"}, "the variable UNSET, which has another value now"),
    ],
    ids=str,
)
def test_a_variable_of_another_value_is_launched(git, told, words):
    commit(git, **{"README.md": "Better.\n"})

    assert words in explain(screen(git.root, variables=find_variables(git.root, **told)))


def test_a_variable_that_nobody_tells_is_launched(git):
    commit(git, **{"README.md": "Better.\n"})
    told = find_variables(git.root)
    del told["FLAG"]

    assert "(--env FLAG=VALUE)" in explain(screen(git.root, variables=told))


@pytest.mark.parametrize(
    ("hours", "word"), [(1, "same"), (47, "same"), (49, "launch"), (-1, "launch")]
)
def test_a_machine_is_believed_as_long_as_its_newest_session_is_fresh(git, hours, word):
    commit(git, **{"README.md": "Better.\n"})

    screened = screen(git.root, now=datetime.now(UTC) + timedelta(hours=hours))

    assert screened.word == word
    assert ("(`fresh` in suite.toml)" in explain(screened)) is (word == "launch")


@pytest.mark.parametrize(("image", "word"), [("perf@sha256:" + "a" * 12, "same"), ("b", "launch")])
def test_an_image_is_believed_where_its_digest_is_named(git, image, word):
    git.ask("switch", "--quiet", "main")
    (file,) = git.root.glob("baselines/*/smoke/nap.json")
    baseline = layout.read(file)
    newest = baseline.sessions[-1]
    soft = msgspec.structs.replace(newest.soft, image=image)
    newest = msgspec.structs.replace(newest, soft=soft)
    layout.write(git.root / "baselines", msgspec.structs.replace(baseline, sessions=(newest,)))
    change_base(git, lambda program: program)

    assert screen(git.root).word == word


def test_of_two_machines_one_has_to_be_named(git):
    git.ask("switch", "--quiet", "main")
    (folder,) = (git.root / "baselines").iterdir()
    shutil.copytree(folder, folder.parent / "other")
    change = folder.name
    git.commit()
    git.ask("switch", "--quiet", "--force-create", "branch")
    commit(git, **{"README.md": "Better.\n"})
    told = find_variables(git.root, folder=change)

    assert "`--machine` names one folder" in explain(screen(git.root, variables=told))
    assert screen(git.root, variables=told, machine=change).word == "same"
    assert "found none" in explain(screen(git.root, variables=told, machine="h100"))


@pytest.mark.parametrize(("device", "word"), [("cpu", "same"), ("cuda:1", "launch")])
def test_a_record_of_another_device_than_is_measured_proves_nothing(git, device, word):
    """What only a GPU imports is in no record of a CPU."""
    commit(git, **{"README.md": "Better.\n"})

    screened = screen(git.root, device=device)

    assert screened.word == word
    assert ("a machine with cpu" in explain(screened)) is (word == "launch")


def test_a_record_of_a_cpu_proves_nothing_where_a_gpu_may_be_chosen(git):
    git.ask("switch", "--quiet", "main")
    file = git.root / "workloads/suite.toml"
    file.write_text(file.read_text().replace('device = "cpu"', 'device = "auto"'))
    git.commit()
    git.ask("switch", "--quiet", "--force-create", "branch")
    commit(git, **{"README.md": "Better.\n"})

    assert "a machine with cpu, and `--device` is auto" in explain(screen(git.root))
    assert screen(git.root, device="cpu").word == "same"


def test_a_removed_workload_is_launched_where_no_suite_toml_names_it(tmp_path):
    git = repositories.init(tmp_path / "project")
    commit(git, **{"workloads/nap.py": WORKLOAD, "workloads/other.py": WORKLOAD})
    git.ask("switch", "--quiet", "--create", "branch")
    commit(git, **{"workloads/other.py": None})

    said = explain(screen(git.root, variables=TOLD, suite=""))

    assert said == "the head has no workload other any more"


def test_a_new_workload_is_launched_where_no_suite_toml_names_it(git):
    git.ask("switch", "--quiet", "main")
    (git.root / "workloads/suite.toml").unlink()
    (file,) = git.root.glob("baselines/*/smoke/nap.json")
    file.parent.rename(file.parent.with_name("default"))
    git.commit()
    git.ask("switch", "--quiet", "--force-create", "branch")
    commit(git, **{"workloads/other.py": WORKLOAD})
    screened = screen(git.root, variables=TOLD, suite="")

    (new,) = (each for each in screened.workloads.touched if each.workload == "other")
    assert new.code == "not_recorded"


def test_a_new_variable_of_native_code_is_launched(git):
    commit(git, **{"README.md": "Better.\n"})
    told = find_variables(git.root, CUDNN_MADE_UP="1")

    assert "the variable CUDNN_MADE_UP is new" in explain(screen(git.root, variables=told))


def test_what_is_always_measured_is_launched(git):
    git.ask("switch", "--quiet", "main")
    file = git.root / "workloads/suite.toml"
    commands = '[[suites.smoke.commands]]\nname = "run"\ncommand = "true"\n'
    tests = '[[suites.smoke.pytest]]\npaths = ["tests"]\n'
    file.write_text(f"{file.read_text()}{commands}{tests}")
    git.commit()
    git.ask("switch", "--quiet", "--force-create", "branch")
    commit(git, **{"README.md": "Better.\n"})

    screened = screen(git.root)

    assert {each.detail for each in screened.workloads.touched} >= {
        "a command is always measured",
        "a test is always measured",
    }


def test_a_dirty_checkout_is_launched_and_a_wrong_word_is_an_error(git):
    write(git.root, "README.md", "Better.\n")

    assert "uncommitted changes" in explain(screen(git.root))
    with pytest.raises(UsageError, match="expected a branch, tag or commit"):
        screen(git.root, against="nowhere")


def test_a_script_that_is_not_checked_out_is_launched(git):
    commit(git, **{"README.md": "Better.\n"})
    git.ask("update-index", "--skip-worktree", "prepare.py")
    (git.root / "prepare.py").unlink()

    assert explain(screen(git.root)) == "prepare.py is not checked out"


def test_a_script_that_may_not_be_read_is_launched(git, monkeypatch):
    commit(git, **{"README.md": "Better.\n"})
    read = Path.read_text

    def refuse(path, *how, **more):
        if path.name == "prepare.py":
            raise PermissionError(13, "Permission denied", str(path))
        return read(path, *how, **more)

    monkeypatch.setattr(Path, "read_text", refuse)

    assert f"Permission denied: '{git.root}/prepare.py'" in explain(screen(git.root))


def test_two_screens_are_two_runs_of_which_each_saved_launches(git):
    commit(git, **{"README.md": "Better.\n"})

    first, second = (screen(git.root).comparison for _ in range(2))

    assert first.head.run != second.head.run


def test_a_job_learns_the_answer_and_needs_no_torch(git, tmp_path):
    commit(git, **{"README.md": "Better.\n"})
    (tmp_path / "torch.py").write_text("raise SystemExit('torch is imported')")
    outputs, summary = tmp_path / "outputs", tmp_path / "summary"
    told = [f"--env={name}={value}" for name, value in find_variables(git.root).items()]

    def run(*more):
        command = [sys.executable, "-P", "-m", "ci_perf", "screen", "--against=main", *more]
        places = {"GITHUB_OUTPUT": str(outputs), "GITHUB_STEP_SUMMARY": str(summary)}
        path = f"{tmp_path}{os.pathsep}{Path(__file__).parents[4]}"
        environment = {**os.environ, **places, "PYTHONPATH": path}
        return subprocess.run(
            command, cwd=git.root, env=environment, capture_output=True, text=True, check=False
        )

    done = run(*told, "--format=json", "--comparison=../same.json")

    assert done.returncode == 0, done.stderr
    assert [each["workload"] for each in json.loads(done.stdout)["same"]] == ["nap"]
    assert "\nsame\n" in outputs.read_text()
    assert "| `nap` | same program |" in summary.read_text()
    assert "no machine was asked" in summary.read_text()
    assert json.loads((tmp_path / "same.json").read_text())["verdict"] == "unchanged"

    outputs.unlink()
    done = run("--comparison=../launch.json")

    assert done.returncode == 0, done.stderr
    assert "\nlaunch\n" in outputs.read_text()
    assert "it read the variable FLAG" in summary.read_text()
    assert not (tmp_path / "launch.json").exists()
    assert run("--env=FLAG").returncode == 2
