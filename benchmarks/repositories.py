"""A temporary git repository in which ci-perf runs as a user has it."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from ci_perf.errors import ExitCode


class Repository:
    """An empty project below `root`, with a cache of its own and no settings of this user."""

    def __init__(self, root: Path) -> None:
        self.root = root / "project"
        self.root.mkdir()
        self._environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("CI_PERF_")},
            "XDG_CACHE_HOME": str(root / "cache"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "PYTHONPATH": os.pathsep.join(
                filter(None, (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")))
            ),
        }
        self.git("init", "--quiet", "--initial-branch=main")

    def write(self, texts: Mapping[str, str]) -> None:
        """Write files, by their paths."""
        for path, text in texts.items():
            file = self.root / path
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")

    def commit(self) -> None:
        """Commit all that is there."""
        self.git("add", "--all")
        author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        self.git(*author, "commit", "--quiet", "--allow-empty", "--message=more")

    def git(self, *arguments: str) -> str:
        """Run git; return what it says on stderr."""
        return self.run("git", *arguments)

    def ci_perf(self, *arguments: str) -> str:
        """Run ci-perf; see `run`."""
        return self.run(sys.executable, "-P", "-m", "ci_perf", *arguments)

    def run(self, *command: str) -> str:
        """Run a command; return what it says on stderr. Wrong use ends the benchmark."""
        done = subprocess.run(
            command,
            cwd=self.root,
            env=self._environment,
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode not in {ExitCode.OK, ExitCode.REGRESSED, ExitCode.NO_ANSWER}:
            raise SystemExit(f"{command}: {done.stderr}")
        return done.stderr
