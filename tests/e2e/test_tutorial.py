"""docs/tutorial.md followed: each file is written and each command typed, as printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ci_perf.errors import ExitCode

ROOT = Path(__file__).parents[2]
TUTORIAL = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TUTORIAL, re.DOTALL | re.MULTILINE)


def blocks_of(language):
    return [code for name, code in BLOCKS if name == language]


class Reader:
    """Types commands into a shell, in the folder that the latest `cd` named."""

    def __init__(self, folder):
        self.folder = folder
        home = folder / "home"
        home.mkdir()
        (home / ".gitconfig").write_text("[user]\nname = a reader\nemail = reader@example.org\n")
        (home / "ci-perf").write_text(f'#!/bin/sh\nexec {sys.executable} -m ci_perf "$@"\n')
        (home / "ci-perf").chmod(0o755)
        paths = os.pathsep.join([str(home), str(Path(sys.executable).parent), os.environ["PATH"]])
        # The lock is apart, so that other tests may measure meanwhile.
        locks = str(folder / "locks")
        ours = {"HOME": str(home), "PATH": paths, "PYTHONPATH": str(ROOT)}
        # Threads of a small model only wait for each other where other tests use the cores.
        ours |= {"CI_PERF_LOCK_DIR": locks, "OMP_NUM_THREADS": "1"}
        self.environment = {**os.environ, **ours}

    def type(self, commands):
        """Return the exit code of the last command and all output."""
        done = subprocess.run(
            ["bash", "-e"],
            input=commands + "\n",
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        for name in re.findall(r"^cd (\S+)$", commands, re.MULTILINE):
            self.folder /= name
        return done.returncode, done.stdout


@pytest.mark.slow
def test_a_newcomer_sees_the_red_that_the_tutorial_promises(tmp_path):
    reader = Reader(tmp_path)
    make, try_it, slow_down, compare, repair, write, merge = blocks_of("bash")
    (program,), (patch,) = blocks_of("python"), blocks_of("diff")

    assert reader.type(make)[0] == 0
    (reader.folder / "train.py").write_text(program)
    code, printed = reader.type(try_it)
    assert code == 0, printed
    before, after = (
        "".join(line[1:] for line in patch.splitlines(keepends=True) if line[0] in kept)
        for kept in (" ", " +")
    )
    assert before in program
    (reader.folder / "train.py").write_text(program.replace(before, after))
    code, printed = reader.type(slow_down)
    assert code == 0, printed

    code, printed = reader.type(compare)
    assert code == ExitCode.REGRESSED, printed
    assert re.search(r"Fail \(red job\): slower: `?command`?", printed), printed

    code, printed = reader.type(f"export CI_PERF_CHECK_BUDGET=45s\n{repair}")
    (pairs,) = re.findall(r"launched alternately: (\d+) pairs", printed)
    # No answer where other programs leave the machine time for fewer pairs than a proof needs.
    assert code == 0 or (code == ExitCode.NO_ANSWER and int(pairs) < 6), printed

    code, printed = reader.type(write)
    assert code == 0, printed
    assert re.search(r"^train\b", printed, re.MULTILINE), printed
    (lines_of_suite,) = blocks_of("toml")
    suite = reader.folder / "workloads/suite.toml"
    (known,) = re.findall(r"^# metric = .*$", suite.read_text(), re.MULTILINE)
    suite.write_text(suite.read_text().replace(known, lines_of_suite))
    code, printed = reader.type(merge)
    assert code == ExitCode.REGRESSED, printed
    assert re.search(r"Fail \(red job\): slower: `?train`?", printed), printed
