"""`ci-perf image build`, as far as it goes without an engine."""

import subprocess
import sys

BASE = f"registry.example/torch:2.13@sha256:{'a' * 64}"


def build(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "ci_perf", "image", "build", *arguments],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        env={"PATH": "/nowhere"},
    )


def test_where_no_dockerfile_of_ours_is_it_is_said_where_one_would_be(tmp_path):
    done = build(tmp_path)

    assert done.returncode == 2
    assert "run it in a checkout of ci_perf, or name a Dockerfile with -f" in done.stderr


def test_a_dockerfile_that_names_an_image_without_a_digest_is_refused(tmp_path):
    (tmp_path / "Dockerfile").write_text(f"FROM {BASE} AS made\nFROM python:3.13\n")

    done = build(tmp_path, "--file", "Dockerfile")

    assert done.returncode == 2
    assert "python:3.13: expected one with its digest" in done.stderr


def test_an_image_without_a_digest_can_be_allowed(tmp_path):
    (tmp_path / "Dockerfile").write_text("FROM python:3.13\n")

    done = build(tmp_path, "--file", "Dockerfile", "--allow-unpinned")

    assert "docker: expected its program on the PATH" in done.stderr
