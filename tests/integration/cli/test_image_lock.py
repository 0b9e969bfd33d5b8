"""`ci-perf image lock`, with the real uv and a folder instead of an index."""

import os
import subprocess
import sys

import pytest

from tests.containers import wheels


@pytest.fixture
def lock(tmp_path):
    """Return a function that runs the command in a folder with two requirements files."""
    (tmp_path / "wheels").mkdir()
    wheels.make(tmp_path / "wheels", "trainer", "1.0", requires=["torch"])
    wheels.make(tmp_path / "wheels", "trainer", "1.1", requires=["torch"])
    (tmp_path / "needs.in").write_text("trainer\n")
    (tmp_path / "bounds.txt").write_text("trainer<1.1\n")
    uv = {"UV_NO_INDEX": "1", "UV_FIND_LINKS": "wheels", "UV_CACHE_DIR": str(tmp_path / "cache")}

    def lock(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "ci_perf", "image", "lock", *arguments],
            check=False,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, **uv},
        )

    return lock


def test_the_lock_lies_beside_its_requirements_and_says_how_it_is_made_again(lock, tmp_path):
    done = lock("--requirements", "needs.in")

    text = (tmp_path / "needs.txt").read_text()
    assert done.returncode == 0, done.stderr
    assert "ci-perf image lock --requirements needs.in --output needs.txt" in text
    assert "trainer==1.1" in text
    assert "next: build the image" in done.stderr


def test_what_a_lock_says_of_itself_makes_it_again(lock, tmp_path):
    bounded = ("--constraint", "bounds.txt", "--python-version", "3.12", "--output", "mine.lock")
    lock("--requirements", "needs.in", *bounded)
    before = (tmp_path / "mine.lock").read_text()
    said = before.splitlines()[1].partition("ci-perf image lock ")[2]

    (tmp_path / "mine.lock").unlink()
    lock(*said.split())

    assert "trainer==1.0" in before
    assert (tmp_path / "mine.lock").read_text() == before


def test_a_torch_that_was_asked_for_is_not_left_out_silently(lock, tmp_path):
    silent = lock("--requirements", "needs.in")
    (tmp_path / "needs.in").write_text("trainer\ntorch>=2\n")

    done = lock("--requirements", "needs.in")

    assert done.returncode == 0, done.stderr
    assert "torch is left out: the base image brings it" in done.stderr
    assert "torch is left out" not in silent.stderr


def test_what_cannot_be_locked_is_wrong_use_and_uv_says_why(lock, tmp_path):
    (tmp_path / "needs.in").write_text("trainer>=7\n")

    done = lock("--requirements", "needs.in")

    assert done.returncode == 2
    assert "needs.in: expected requirements that can be locked" in done.stderr
    assert "trainer>=7" in done.stderr
    assert not (tmp_path / "needs.txt").exists()
