"""Each side of `check -- COMMAND` is its own, whatever variables and words lead into the head.

A command prints the pace of the files that it finds: 101.37 ms in the base, 303.91 in the head.
"""

import json
import sys

import pytest

from ci_perf.errors import ExitCode
from tests import headlines, repositories
from tests.projects import Project

METRIC = ("--metric", "step_ms=time ([0-9.]+)ms")
PROGRAM = """
import os, sys
{where}
from pace import MS
for _ in range(3):
    print(f"time {{MS}}ms")
"""
PLAIN = PROGRAM.format(where="")
BY_PWD = PROGRAM.format(where="sys.path.insert(0, os.environ['PWD'])")


@pytest.fixture
def git(tmp_path):
    """Return a repository whose head is three times slower than its main."""
    made = repositories.init(tmp_path / "project")
    made.commit(
        run_py=PLAIN,
        by_pwd_py=BY_PWD,
        by_data_py=PROGRAM.format(where="print(open(os.environ['DATA']).read())"),
        pace_py="MS = 101.37",
        Makefile=f"bench: ; @cd $(PWD) && {sys.executable} run.py\n",
    )
    made.ask("switch", "--quiet", "--create", "branch")
    made.commit(pace_py="MS = 303.91")
    return made


def check(git, *command, options=METRIC, cwd=None, **environment):
    """Check a command against main; return how it ended, and its row of the step time."""
    done = Project(cwd or git.root).run(
        *("check", "--against", "main", "--wait", "0s", "--explain", "0s"),
        *("--comparison", "../comparison.json", "--report", "../report.md", *options),
        *(["--", *command] if command else []),
        **{"CI_PERF_LOCK_DIR": str(git.root.parent / "locks"), **environment},
    )
    return done, read_row(git)


def read_row(git, metric="step_time_s"):
    file = git.root.parent / "comparison.json"
    rows = json.loads(file.read_text())["rows"] if file.exists() else []
    return next((row for row in rows if row.get("metric") == metric), None)


# Prints the largest of the times that all of them print.
LARGEST = "({}) | sort -t ' ' -k 2 -n | tail -n 1"
WAYS = (
    "make -s bench",
    f"{sys.executable} by.pwd.py",
    f'cd "$GITHUB_WORKSPACE" && {sys.executable} run.py',
    f"{sys.executable} $FILES",
)


def test_variables_lead_each_side_into_its_own_checkout(git):
    variables = dict.fromkeys(["PWD", "OLDPWD", "GITHUB_WORKSPACE"], str(git.root))
    command = LARGEST.format("; ".join(f"({way})" for way in WAYS))

    done, row = check(git, "sh", "-c", command, FILES=f"{git.root}/run.py", **variables)

    assert done.code == ExitCode.REGRESSED, done.err
    assert (row["base"], row["head"]) == (pytest.approx(0.10137), pytest.approx(0.30391))
    assert "command +200 %" in headlines.named_after(headlines.FAIL, done.err)
    assert "head's checkout" not in (git.root.parent / "report.md").read_text()


def test_untracked_data_go_on_working_and_are_named_once(git):
    (git.root / "numbers").write_text("time 101.37ms")
    data = f"{git.root}/numbers"

    done, row = check(git, sys.executable, "by.data.py", DATA=data, CI_PROJECT_DIR=str(git.root))

    assert done.code == ExitCode.REGRESSED, done.err  # of the pace, which each side has itself
    assert row["base"] == pytest.approx(0.10137)
    report = (git.root.parent / "report.md").read_text()
    assert report.count("these variables lead both sides into the head's checkout: DATA") == 1
    assert report.count("these variables lead each side into its own checkout: CI_PROJECT_DIR") == 1


@pytest.mark.parametrize("word", ["{link}/run.py", "{root}/run.py", "../project/run.py"])
def test_a_word_that_leads_into_the_checkout_is_refused(git, tmp_path, word):
    link = tmp_path / "link"
    link.symlink_to(git.root)

    done, row = check(git, sys.executable, word.format(link=link, root=git.root), cwd=link)

    assert done.code == ExitCode.USAGE
    assert "both run the head's files" in done.err
    assert row is None


def test_an_alarm_on_another_file_system_is_at_most_likely_slower(git, mounted):
    """A README-only change, in a mounted worktree whose repository is elsewhere."""
    program = "import os\nprint('time 303.91ms' if os.path.ismount('.') else 'time 101.37ms')"
    git.ask("switch", "--quiet", "main")
    git.commit(disk_py=program)
    git.ask("worktree", "add", "--quiet", "--force", "-b", "readme", mounted)
    repositories.Repository(mounted).commit(README="More words")

    done, row = check(git, sys.executable, "disk.py", cwd=mounted)

    assert done.code == ExitCode.NO_ANSWER, done.err
    assert row["verdict"] == "likely_slower"
    report = (git.root.parent / "report.md").read_text()
    assert "`other_file_system` (`command`): `the head lies in" in report.partition("<details>")[0]


SWITCHES = "test -e ../switched || { touch ../switched; git -C $(cat ../where) switch -q main; }; "


@pytest.mark.parametrize("first", [SWITCHES, "echo 1 >> count; "])
def test_a_checkout_that_changes_while_it_is_measured_makes_the_run_invalid(git, first):
    """A command that writes a tracked file on both sides does not."""
    git.ask("switch", "--quiet", "main")
    git.commit(count="0")
    git.ask("switch", "--quiet", "-C", "branch")
    git.commit(pace_py="MS = 303.91")
    (git.root.parent / "where").write_text(str(git.root))

    done, _ = check(git, "sh", "-c", f"{first}{sys.executable} run.py")

    above = (git.root.parent / "report.md").read_text().partition("<details>")[0]
    if first == SWITCHES:
        assert done.code == ExitCode.NO_ANSWER, done.err
        assert "this run cannot be trusted" in above
        assert "leave the checkout as it is until the end: `the checkout changed while" in above
    else:
        assert done.code == ExitCode.REGRESSED, done.err
        assert "checkout_changed" not in above


SUITE = """
schema_version = 1
setup = {{ command = '''{setup}''' }}
[suites.s]
device = "cpu"
canaries = false
[[suites.s.commands]]
name = "bench"
command = '''{command}'''
metric = "step_ms=time ([0-9.]+)ms"
protocol = {{ processes = 1 }}
{server}
"""


def commit_suite(git, command, setup="true", server=""):
    """Commit a suite with a command to both sides; the head is slower."""
    git.ask("switch", "--quiet", "main")
    (git.root / "workloads").mkdir(exist_ok=True)
    text = SUITE.format(command=command, setup=setup, server=server)
    (git.root / "workloads/suite.toml").write_text(text)
    git.commit()
    git.ask("switch", "--quiet", "-C", "branch")
    git.commit(pace_py="MS = 303.91")


def test_setup_servers_and_commands_of_a_suite_run_in_their_own_side(git):
    served = """import urllib.request, sys
text = urllib.request.urlopen(sys.argv[1]).read().decode()
print(text.replace("MS = ", "time ") + "ms")"""
    (git.root / "ask.py").write_text(served)
    ways = ("make bench", "cat out", f"{sys.executable} ask.py http://localhost:{{port}}/pace.py")
    (git.root / "bench.sh").write_text(LARGEST.format("; ".join(ways)).replace("{port}", "$1"))
    commit_suite(
        git,
        "sh bench.sh {port}",
        setup=f'cd "$GITHUB_WORKSPACE" && {sys.executable} run.py > "$PWD/out"',
        server=f"""
server = '''sh -c 'cd "$WORKSPACE" && exec {sys.executable} -m http.server {{port}}' '''
ready = "http://localhost:{{port}}/"
ready_s = 60""",
    )

    root = str(git.root)
    done, row = check(
        git, options=["--suite", "s"], PWD=root, GITHUB_WORKSPACE=root, WORKSPACE=root
    )

    assert done.code == ExitCode.REGRESSED, done.err
    assert (row["base"], row["head"]) == (pytest.approx(0.10137), pytest.approx(0.30391))


def test_a_path_into_the_checkout_is_refused_in_a_suite_too(git):
    commit_suite(git, f"{sys.executable} {git.root}/run.py")

    done, _ = check(git, options=["--suite", "s"])

    assert done.code == ExitCode.USAGE
    assert "both run the head's files" in done.err


def test_a_base_whose_suite_leads_into_the_checkout_is_not_comparable(git):
    commit_suite(git, f"{sys.executable} {git.root}/run.py")
    text = SUITE.format(command=f"{sys.executable} run.py", setup="true", server="")
    (git.root / "workloads/suite.toml").write_text(text)
    git.commit()

    done, _ = check(git, options=["--suite", "s"])

    assert done.code == ExitCode.NO_ANSWER
    assert "leads into the head's checkout" in done.err
