"""Real git repositories on disk, as a laptop or a runner has them."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

# Nothing of the machine's configuration; a clone from a folder is allowed, also as a submodule.
ALONE = {
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_AUTHOR_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


@dataclass(frozen=True)
class Repository:
    """A folder in which git is asked as a person asks it."""

    root: Path

    def ask(self, *arguments, **variables):
        """Run git, with these variables of the environment, too; return what it says."""
        done = subprocess.run(
            ["git", "-C", self.root, "-c", "protocol.file.allow=always", *map(str, arguments)],
            check=True,
            capture_output=True,
            env={**os.environ, **ALONE, **variables},
        )
        return done.stdout.decode().strip()

    def commit(self, **files):
        """Write files (`a_py="..."` is a.py) and commit all there is; return the commit."""
        for name, text in files.items():
            (self.root / name.replace("_", ".")).write_text(text)
        self.ask("add", "--all")
        self.ask("commit", "--quiet", "--allow-empty", "--message=more")
        return self.ask("rev-parse", "HEAD")

    def clone(self, root, *options):
        """Clone it, through the protocol, as a clone from elsewhere."""
        self.ask("clone", "--quiet", *options, f"file://{self.root}", root)
        return Repository(root)

    def worktrees(self):
        """Return the folders of all worktrees that git knows."""
        lines = self.ask("worktree", "list", "--porcelain").splitlines()
        return [line.removeprefix("worktree ") for line in lines if line.startswith("worktree ")]


def init(root):
    """Make an empty repository, whose branch is main."""
    root.mkdir(parents=True)
    made = Repository(root)
    made.ask("init", "--quiet", "--initial-branch=main")
    return made


def forked(root):
    """Make a repository with main, and a branch `change` that is checked out: one commit each."""
    made = init(root)
    made.commit(code_py="base")
    made.ask("checkout", "--quiet", "-b", "change")
    made.commit(code_py="head")
    made.ask("checkout", "--quiet", "main")
    made.commit(other_py="what main did meanwhile")
    made.ask("checkout", "--quiet", "change")
    return made
