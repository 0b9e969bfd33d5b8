"""What every command has in common: help, options, exit codes, and what is not imported."""

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ci_perf import __main__
from ci_perf.cli import suite_commands
from ci_perf.cli.main import COMMANDS, HIDDEN, cli, group_commands
from ci_perf.errors import ExitCode
from tests.processes import run_python
from tests.runs import STEADY, a_measured

ROOT = Path(__file__).parents[3]


def command_of(name):
    return cli.get_command(click.Context(cli), name)


def test_help_shows_few_commands_in_groups_and_check_few_options(project):
    shown = project.run("--help").out
    names = [name for names in group_commands().values() for name in names]

    assert {*names, *HIDDEN} == set(COMMANDS)
    assert re.findall(r"^  (\w+)  ", shown, re.MULTILINE) == names
    assert all(f"\n\n{title}:\n" in shown for title in group_commands())
    assert len(names) <= 17
    assert shown.endswith(f"\nMore:\n  {', '.join(sorted(HIDDEN))}\n")
    options = re.findall(
        r"^  (?:-\w, )?(--[\w-]+)", project.run("check", "--help").out, re.MULTILINE
    )
    assert "--help" in options
    assert len(options) <= 23


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_every_option_its_environment_variable(name):
    """click builds CI_PERF_<COMMAND>_<OPTION> from the name of the parameter."""
    command = command_of(name)
    done = CliRunner().invoke(cli, [name, "--help"])

    assert done.exit_code == ExitCode.OK
    assert " ".join(command.help.split()).startswith(COMMANDS[name].rstrip("."))
    # A loss is one of training: what became worse is a slowdown, or a regression.
    assert not re.search(r"\bloss(es)?\b", done.output)
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.name != "help":
            longest = max(parameter.opts, key=len).removeprefix("--").replace("-", "_")
            assert parameter.name == longest


def test_an_option_from_the_environment_counts(project):
    project.workload("good").suite("good")

    assert "matmul.size=256" in project.run("list", CI_PERF_LIST_SUITE="builtin:smoke").out
    assert json.loads(project.run("list", CI_PERF_LIST_JSON="1").out)["suite"] == "smoke"


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["run", "--processes", "0"],
        ["run", "--device", "tpu"],
        ["run", "--device", "cuda:x"],
        ["compare"],
        ["compare", "a", "b", "c"],
        ["compare", "missing.json"],
        ["accept", "missing.json"],
        ["accept", "run.json", "--append", "--replace"],
        ["accept", "run.json", "--replace", "--reason", " "],
        ["list"],
        ["list", "--suite", "builtin:nonsense"],
        ["check", "--suite", "nonsense"],
        ["schema"],
        ["schema", "nonsense"],
    ],
)
def test_wrong_use_is_exit_code_2_and_a_sentence(project, arguments):
    done = project.run(*arguments)

    assert done.code == ExitCode.USAGE
    assert "rror" in done.err
    assert "Traceback" not in done.err
    assert not done.out


def test_an_uncaught_exception_is_3_and_never_blames_the_pull_request(project):
    crash = (
        "import sys, ci_perf.system.git as git\n"
        "def boom(root): raise RuntimeError('ours')\n"
        "git.source = boom\n"
        "sys.argv = ['ci-perf', 'run']\n"
        "from ci_perf.cli.main import main\nmain()\n"
    )
    project.workload("good").suite("good")

    done = run_python("-c", crash, cwd=project.root)

    assert done.returncode == ExitCode.NO_ANSWER
    assert "bug in ci-perf, not in your change" in done.stderr


HEAVY = {"torch", "transformers", "pandas", "pyarrow", "github", "numpy", "scipy"}


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        # With msgspec the command would take a third longer.
        (["--help"], HEAVY | {"msgspec", "jinja2", "rich"}),
        (["list"], HEAVY),
        (["compare", "a.json", "b.json"], HEAVY),
        (["accept", "a.json"], HEAVY),
    ],
)
def test_what_a_command_does_not_need_is_not_imported(project, arguments, heavy):
    project.workload("good").suite("good")
    project.recorded("a.json", a_measured("good", *STEADY))
    project.recorded("b.json", a_measured("good", *STEADY))
    probe = (
        "import sys\n"
        "from ci_perf.cli import main as front\n"
        f"sys.argv = ['ci-perf', *{arguments!r}]\n"
        "try:\n    front.main()\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        f"sys.exit(', '.join({heavy!r} & sys.modules.keys()) or 0)\n"
    )

    done = run_python("-c", probe, cwd=project.root)

    assert done.returncode == 0, done.stderr


def test_a_folder_that_is_gone_is_named(project):
    done = project.shell("mkdir gone; cd gone; rmdir ../gone; ci-perf list")

    assert done.returncode == ExitCode.USAGE
    assert "the current folder is gone" in done.stderr


def test_schema_prints_one_and_writes_all(project):
    done = project.run("schema", "run")

    assert json.loads(done.out)["title"] == "ci-perf run"
    assert project.run("schema", "--directory", "out/schema").code == ExitCode.OK
    assert len(list((project.root / "out/schema").iterdir())) == len(suite_commands.KINDS)


def hear_every_signal():
    """A shell starts what runs in its background with SIGINT ignored."""
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, signal.SIG_DFL)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_during_the_imports_ends_with_one_line(tmp_path, ending):
    """A library that takes long to import says when the imports have begun."""
    slow = "import time\nprint('importing', flush=True)\ntime.sleep(600)\n"
    (tmp_path / "click.py").write_text(slow)
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "ci_perf", "--help"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        preexec_fn=hear_every_signal,  # noqa: PLW1509  it takes no lock
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        assert process.stdout.readline() == "importing\n"
        process.send_signal(ending)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()

    assert (process.returncode, err) == (ExitCode.INTERRUPTED, "interrupted\n")


def test_a_python_without_our_packages_says_which_and_how_to_get_them(tmp_path):
    done = run_python("-S", "-m", "ci_perf", "--help", cwd=tmp_path, PYTHONPATH=str(ROOT))

    assert done.returncode == ExitCode.NO_ANSWER
    (line,) = done.stderr.splitlines()
    assert "found no click, jinja2, msgspec, rich; run `pip install .`" in line
    assert "make wheels" in line


def test_the_packages_that_are_looked_for_are_those_that_are_required():
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]

    assert sorted(re.split(r"\W", package)[0] for package in needed) == sorted(__main__._PACKAGES)
