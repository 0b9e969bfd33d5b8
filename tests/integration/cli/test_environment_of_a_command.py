"""A command runs as it is: what differs in its environment stands in docs/commands.md."""

import json
import os
import re
import sys
from pathlib import Path

import pytest

from ci_perf.errors import ExitCode
from ci_perf.launch.child_environment import WITHHELD
from ci_perf.model.suite import THREAD_VARIABLES
from tests import repositories
from tests.projects import Project

DOCUMENT = Path(__file__).parents[3] / "docs/commands.md"
# What a user may have set, which decides how fast a program is, or whether it runs at all.
MINE = {
    "OMP_NUM_THREADS": "7",
    "MKL_NUM_THREADS": "5",
    "TOKENIZERS_PARALLELISM": "true",
    "HF_HUB_OFFLINE": "0",
    "PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync",
    "PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync",
    "PYTHONDONTWRITEBYTECODE": "1",
    "GITHUB_TOKEN": "secret",
}
# Appends what it is given to a file of its own, below the folder SEEN.
SHOW = """
import json, os
with open(os.path.join(os.environ["SEEN"], "{name}"), "a") as file:
    file.write(json.dumps([os.getcwd(), dict(os.environ)]) + "\\n")
"""
SERVE = """
import sys
from http.server import HTTPServer, SimpleHTTPRequestHandler
HTTPServer(("localhost", int(sys.argv[1])), SimpleHTTPRequestHandler).serve_forever()
"""
SUITE = f"""
schema_version = 1
setup = {{ command = "{sys.executable} setup.py" }}
[suites.x]
device = "cpu"
canaries = false
protocol = {{ processes = 1 }}
[[suites.x.commands]]
name = "it"
server = "{sys.executable} serve.py {{port}}"
ready = "http://localhost:{{port}}/"
command = "{sys.executable} show.py"
"""


@pytest.fixture
def seen(tmp_path):
    folder = tmp_path / "seen"
    folder.mkdir()
    return folder


def named_differences():
    """Return the variables that the document names, with those of tokens."""
    _, _, section = DOCUMENT.read_text("utf-8").partition("\n## What ci_perf changes\n")
    rows = re.findall(r"^\|([^|]*)\|", section.partition("\n## ")[0], re.MULTILINE)
    return {*WITHHELD, *(name for row in rows for name in re.findall(r"`(\w+)`", row))}


def list_environments(folder, name):
    """Return the environments that a program of this name was given, by the folder it ran in."""
    return dict(map(json.loads, (folder / name).read_text().splitlines()))


def find_differences(environment, mine):
    before = {**os.environ, "CI_PERF_LOCK_DIR": environment["CI_PERF_LOCK_DIR"], **mine}
    names = before.keys() | environment.keys()
    return {name for name in names if before.get(name) != environment.get(name)}


def test_both_sides_of_a_command_have_the_environment_of_the_user(tmp_path, seen):
    git = repositories.init(tmp_path / "project")
    git.commit(show_py=SHOW.format(name="command"))
    git.ask("switch", "--quiet", "--create", "branch")
    git.commit(readme="new")
    mine = {**MINE, "SEEN": str(seen)}

    done = Project(git.root).run(
        *("check", "--against", "main", "--wait", "0s", "--budget", "1s", "-o", "../run.json"),
        *("--", sys.executable, "show.py"),
        **mine,
    )

    assert done.code in {ExitCode.OK, ExitCode.NO_ANSWER}, done.err
    base, head = list_environments(seen, "command").values()
    for environment in (base, head):
        assert "PYTHONDONTWRITEBYTECODE" not in environment
        assert find_differences(environment, mine) <= named_differences()
    own = {name for name in base.keys() | head.keys() if base.get(name) != head.get(name)}
    assert own <= named_differences()


@pytest.mark.parametrize(
    ("options", "threads"), [((), ["5", "7"]), (("--threads", "3"), ["3", "3"])]
)
def test_so_have_the_commands_of_a_suite_their_servers_and_the_setup(
    tmp_path, seen, options, threads
):
    project = Project(tmp_path / "project")
    (project.root / "workloads").mkdir(parents=True)
    (project.root / "workloads/suite.toml").write_text(SUITE)
    (project.root / "show.py").write_text(SHOW.format(name="command"))
    (project.root / "serve.py").write_text(SHOW.format(name="server") + SERVE)
    (project.root / "setup.py").write_text(SHOW.format(name="setup"))
    mine = {**MINE, "SEEN": str(seen)}

    done = project.run("run", "--wait", "0s", *options, "-o", "../run.json", **mine)

    assert done.code == ExitCode.OK, done.err
    for name in ("command", "server"):
        (environment,) = list_environments(seen, name).values()
        assert [environment[each] for each in THREAD_VARIABLES] == threads
        allowed = {*named_differences(), *(THREAD_VARIABLES if options else ())}
        assert find_differences(environment, mine) <= allowed
    (environment,) = list_environments(seen, "setup").values()
    assert find_differences(environment, mine) <= named_differences() | {"PWD"}  # of the shell


def test_a_test_of_pytest_has_it_too_with_one_thread(tmp_path, seen):
    project = Project(tmp_path / "project")
    (project.root / "workloads").mkdir(parents=True)
    (project.root / "workloads/suite.toml").write_text(
        'schema_version = 1\n[suites.x]\ndevice = "cpu"\ncanaries = false\n'
        'protocol = { processes = 1 }\n[[suites.x.pytest]]\npaths = ["test_it.py"]\n'
    )
    (project.root / "test_it.py").write_text(
        f"{SHOW.format(name='test')}\ndef test_it(benchmark): benchmark(sum, [1])\n"
    )
    mine = {**MINE, "SEEN": str(seen)}

    done = project.run("run", "--wait", "0s", "-o", "../run.json", **mine)

    assert done.code == ExitCode.OK, done.err
    (environment,) = list_environments(seen, "test").values()
    assert [environment[each] for each in THREAD_VARIABLES] == ["1", "1"]
    of_pytest = {name for name in environment if name.startswith("PYTEST_")}
    allowed = {*named_differences(), *of_pytest, *THREAD_VARIABLES}
    assert find_differences(environment, mine) <= allowed


@pytest.fixture(scope="module")
def accepted(tmp_path_factory):
    """A project with a baseline of a command with one thread."""
    project = Project(tmp_path_factory.mktemp("accepted") / "project")
    (project.root / "workloads").mkdir(parents=True)
    (project.root / "workloads/suite.toml").write_text(
        'schema_version = 1\n[suites.x]\ndevice = "cpu"\ncanaries = false\n'
        "protocol = { processes = 2, timed_max_s = 0.1 }\n"
        '[[suites.x.commands]]\nname = "it"\ncommand = "true"\n'
    )
    project.run("run", "--wait", "0s", OMP_NUM_THREADS="1")
    accepted = project.run("accept", "run.json", "--force")
    assert accepted.code == ExitCode.OK, accepted.err
    return project


@pytest.mark.parametrize(
    ("threads", "options", "is_other"),
    [("1", (), False), ("3", (), True), ("1", ("--threads", "3"), True)],
)
def test_a_baseline_with_other_threads_is_not_comparable(accepted, threads, options, is_other):
    done = accepted.run("check", "--wait", "0s", *options, OMP_NUM_THREADS=threads)

    assert ("not comparable" in done.out) is is_other, done.out + done.err
    assert ("other threads: own (CPUs=" in done.out) is is_other
    if is_other:
        assert done.code == ExitCode.NO_ANSWER
        assert "ci-perf accept" in done.out
