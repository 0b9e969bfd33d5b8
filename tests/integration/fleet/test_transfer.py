"""What travels to a node without a shared folder, and back: real git, and a real agent."""

import os
import signal
import subprocess
import sys

import pytest

from ci_perf.errors import InvalidFileError, UsageError
from ci_perf.fleet import node, transfer
from ci_perf.model import codec
from ci_perf.model.fleet import Order, Receipt
from ci_perf.system import files, processes
from tests import repositories
from tests.processes import is_alive, wait_until
from tests.work_plans import a_unit

# The run that a node leaves is its last argument.
SEEN = """
{ cat code.py; echo; git rev-parse HEAD; git merge-base HEAD "$1"; git log --oneline | wc -l
git config --list; env; } > "$2"
"""


@pytest.fixture
def repository(tmp_path):
    made = repositories.forked(tmp_path / "project")
    made.ask("remote", "add", "origin", "https://user:a-token@example.org/project")
    made.ask("update-ref", "refs/remotes/origin/main", "main")
    made.ask("tag", "v1.0", "main")
    return made


def an_attempt(repository, script, *words, against=""):
    """Write what a controller would have prepared, below its checkout."""
    folder = repository.root / "out/attempts/u/1-nonce"
    folder.mkdir(parents=True, exist_ok=True)
    files.write(folder / "unit.json", a_unit("a", id="u", against=against))
    order = Order(
        unit="u",
        nonce="nonce",
        command=("sh", "-c", script, "sh", *words, str(folder / node.RUN)),
        cwd=str(repository.root),
        environment=(),
    )
    files.write(folder / node.ORDER, order)
    return folder


def start_agent(packed, folder, tmp_path, **more):
    """Start what a node runs, in a place for temporary files of its own."""
    there = tmp_path / "node"
    there.mkdir(exist_ok=True)
    given = tmp_path / "given"
    given.write_bytes(transfer.sent(packed, folder) + packed.repository)
    with given.open("rb") as source:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", transfer.MODULE, str(os.getpid())],
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(there), "A_TOKEN_OF_SOMEBODY": "secret"},
            **more,
        )


def returned_by(repository, tmp_path, script, *words, against=""):
    folder = an_attempt(repository, script, *words, against=against)
    agent = start_agent(transfer.pack(repository.root, against), folder, tmp_path)
    out, err = agent.communicate()
    assert agent.returncode == 0, err
    assert list((tmp_path / "node").iterdir()) == [], "a folder was left on the node"
    transfer.unpack(out, folder)
    return folder


@pytest.mark.parametrize("against", ["origin/main", "refs/tags/v1.0", "HEAD~1"])
def test_a_node_is_sent_the_commits_of_both_sides_and_no_more(repository, tmp_path, against):
    repository.ask("commit", "--allow-empty", "--message=one more")
    base = repository.ask("merge-base", "HEAD", against)
    named = transfer.pack(repository.root, against).against

    folder = returned_by(repository, tmp_path, SEEN, named, against=against)

    code, head, seen_base, commits, *rest = (folder / node.RUN).read_text().splitlines()
    assert (code, head) == ("head", repository.ask("rev-parse", "HEAD"))
    assert seen_base == base
    assert named == (against if against != "HEAD~1" else base)
    assert int(commits) == 1 + int(repository.ask("rev-list", "--count", f"{base}..HEAD"))
    assert not [line for line in rest if "token" in line.lower()]
    assert files.read(folder / node.RECEIPT, Receipt).exit_code == 0


def test_a_unit_that_is_a_commit_is_sent_that_one_and_its_base(repository, tmp_path):
    base, commit = (repository.ask("rev-parse", name) for name in ("HEAD~1", "HEAD"))
    later = repository.commit(code_py="later")
    script = "git worktree add --quiet --detach ../base $1; git -C ../base rev-parse HEAD > $2"
    script += f"; git rev-parse HEAD >> $2; git cat-file -e {later} || echo not sent >> $2"
    folder = an_attempt(repository, script, base, against=base)

    agent = start_agent(transfer.pack(repository.root, base, commit), folder, tmp_path)
    out, _ = agent.communicate()

    left = codec.decode(out, transfer.ReturnedFiles, name="out").run
    assert left == f"{base}\n{commit}\nnot sent\n".encode()


def test_without_a_base_a_node_is_sent_one_commit(repository, tmp_path):
    (repository.root / "code.py").write_text("changed")
    with pytest.raises(UsageError, match=r"expected no changed files.*found 'M code.py'"):
        transfer.check(repository.root)
    repository.commit()
    transfer.check(repository.root)

    folder = returned_by(repository, tmp_path, "cat code.py; git log --oneline | wc -l > $1")

    assert (folder / node.RUN).read_text().strip() == "1"
    assert files.read(folder / node.RECEIPT, Receipt).output == "changed"


def test_a_folder_within_the_checkout_is_entered_on_the_node(repository, tmp_path):
    inside = repository.root / "parts/one"
    inside.mkdir(parents=True)
    (inside / "part.py").write_text("inside")
    repository.commit()
    folder = an_attempt(repository, "cat part.py $1 > $2", str(repository.root / "code.py"))

    agent = start_agent(transfer.pack(inside, ""), folder, tmp_path)
    out, _ = agent.communicate()

    assert codec.decode(out, transfer.ReturnedFiles, name="out").run == b"insidehead"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("ln -s /etc/passwd $1", "run.json: cannot be read"),
        ("truncate -s 51M $1", "run.json: expected at most 52428800 bytes, found more"),
        ("true", ""),
    ],
)
def test_what_cannot_be_sent_is_told(repository, tmp_path, script, said):
    folder = returned_by(repository, tmp_path, script)

    assert not (folder / node.RUN).exists()
    assert files.read(folder / node.RECEIPT, Receipt).output.strip().startswith(said)


def test_what_no_agent_writes_is_refused(tmp_path):
    for data in (b"", b"{", b'{"receipt": 5, "run": null}', b" " * (transfer.MOST_BYTES + 1)):
        with pytest.raises(InvalidFileError):
            transfer.unpack(data, tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_a_base_that_is_not_here_is_named(repository, tmp_path):
    for wrong in ("nope", "--all"):
        with pytest.raises(UsageError, match=f"{wrong}: expected a branch, tag or commit"):
            transfer.pack(repository.root, wrong)
    with pytest.raises(UsageError, match="expected a git repository with a commit"):
        transfer.check(tmp_path)


def test_a_cancelled_agent_leaves_nothing_on_its_node(repository, tmp_path):
    folder = an_attempt(repository, "sleep 1000")
    agent = start_agent(transfer.pack(repository.root, ""), folder, tmp_path)
    wait_until(lambda: processes.carrying(node.COOKIE, "nonce"))

    agent.send_signal(signal.SIGTERM)
    out, _ = agent.communicate()

    assert (agent.returncode, out) == (143, b"")
    assert processes.carrying(node.COOKIE, "nonce") == []
    assert list((tmp_path / "node").iterdir()) == []


def test_a_killed_agent_takes_its_command_with_it(repository, tmp_path):
    folder = an_attempt(repository, "exec sleep 1000")
    agent = start_agent(transfer.pack(repository.root, ""), folder, tmp_path)
    wait_until(lambda: processes.carrying(node.COOKIE, "nonce"))
    below = [process.pid for process in processes.below(agent.pid)]

    agent.kill()
    agent.communicate()

    wait_until(lambda: not any(is_alive(pid) for pid in below))
