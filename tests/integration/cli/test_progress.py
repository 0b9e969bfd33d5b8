"""What a log, and GitHub's, shows of a run; and what the canaries leave in its file."""

from ci_perf.errors import ExitCode
from ci_perf.model.run import Run
from ci_perf.system import files

# Every way in which a program could speak to the runner that reads our stderr.
LOUD = "print('::error::gotcha\\n::endgroup::\\n  ::endgroup::\\n##[endgroup]')\n"


def commands(err):
    """Return what GitHub's runner would obey: it looks behind blanks, too."""
    return [line for line in err.splitlines() if line.lstrip().startswith("::") or "##[" in line]


def test_the_runner_of_github_obeys_nothing_that_a_workload_prints(project):
    project.workload("bad", LOUD + "raise ValueError('::error::boom')\n")
    project.workload("good").suite("bad", "good")

    done = project.run("run", GITHUB_ACTIONS="true")

    lines = done.err.splitlines()
    assert lines[0] == "measuring 2 workloads in 4 processes"
    assert "[1/2] bad: failed in phase import" in lines
    assert "  | : :error::gotcha" in lines
    assert commands(done.err) == commands(done.out) == []


def test_canaries_are_kept_in_the_run_and_no_file_of_the_repository_is_one(project):
    """Here one would stand in for torch, if only for the canaries."""
    (project.root / "torch.py").write_text("raise SystemExit('a canary of mine')\n")
    project.workload("good").suite("good", canaries=True)

    done = project.run("run")

    canaries = files.read(project.root / "run.json", Run).canaries
    names = ["launch_latency", "matmul_random", "memory_copy"]
    assert done.code == ExitCode.OK
    assert [c.name for c in canaries if c.position == "before"] == names
    assert [c.name for c in canaries if c.position == "after"] in ([], names)


def test_canaries_that_fail_are_told_and_the_run_goes_on(project, tmp_path):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/torch.py").write_text(
        "import sys\nif 'canary' in sys.argv[0]:\n    raise OSError('libcudart: cannot open')\n"
        "raise ImportError\n"
    )
    project.workload("good").suite("good", canaries=True)

    done = project.run("run", PYTHONPATH=str(tmp_path / "broken"))

    run = files.read(project.root / "run.json", Run)
    assert done.code == ExitCode.OK
    assert [r.code for r in run.validity.reasons if "canar" in r.code] == ["canary_failed"]
    assert "degraded: canary_failed: no canaries before measuring" in done.err
    assert "OSError: libcudart: cannot open" in done.err
    assert [m.workload for m in run.measured] == ["good"]
