"""`ci-perf run --runner docker`: what options, suite.toml and variables say, and refusals."""

import pytest

from ci_perf.errors import ExitCode
from ci_perf.model.run import Run
from ci_perf.system import files
from tests.projects import QUICK, Project

pytestmark = [pytest.mark.container, pytest.mark.usefixtures("in_docker")]

# Says in its name of an item how many MiB /tmp and /dev/shm have.
MEASURES = '''
"""How much room there is."""
import os
from ci_perf.workload import Workload

def room(folder):
    found = os.statvfs(folder)
    return found.f_blocks * found.f_frsize >> 20

def step():
    sum(range(1000))

def build(context):
    return Workload(step=step, item_unit=f"tmp={room('/tmp')}+shm={room('/dev/shm')}")
'''
SMALL = '[container]\nimage = "{image}"\ntmp_size = "48m"\nshm_size = "48m"\n'
TAG = "ci-perf-test-command-line:1"


@pytest.fixture
def project(tmp_path):
    """A project that can be measured, and no word of an image."""
    project = Project(tmp_path / "project")
    project.root.mkdir()
    return project.workload("room", MEASURES, build="").suite("room")


@pytest.fixture
def pinned(project, python_image):
    """The same, whose suite.toml names an image, and how large its folders are."""
    return project.suite("room", settings=SMALL.format(image=python_image) + QUICK)


@pytest.fixture
def tag(in_docker, python_image):
    """The tag of an image of its own: whoever removes the last name of an image removes that."""
    container = in_docker.must("create", python_image, "x")
    in_docker.must("commit", container, TAG)
    in_docker.must("rm", container)
    yield TAG
    in_docker.must("rmi", "--no-prune", TAG)  # what it was made of stays


def measured(project, *options, **environment):
    """Run once in docker; return how it ended, and the run."""
    place = ("--runner", "docker") if "CI_PERF_RUN_RUNNER" not in environment else ()
    line = ("run", "--device", "cpu", "--processes", "1", *place, *options)
    done = project.run(*line, **environment)
    assert done.code == ExitCode.OK, done.err
    return done, files.read(project.root / "run.json", Run)


def refused(project, *options):
    """Return how a run ended before anything was measured, and what was said."""
    done = project.run("run", "--runner", "docker", "--device", "cpu", *options)
    assert "measuring" not in done.err
    assert not (project.root / "run.json").exists()
    return done.code, done.err


def test_suite_toml_says_where_it_is_measured_and_options_say_otherwise(pinned, python_image):
    _, run = measured(pinned, "--container", "shm-size=32m")

    assert run.measured[0].item_unit == "tmp=48+shm=32"
    assert run.environment.image.config == python_image
    assert run.environment.image.engine == "docker"


def test_variables_say_the_same_as_options(project, python_image):
    _, run = measured(
        project,
        CI_PERF_RUN_RUNNER="docker",
        CI_PERF_RUN_CONTAINER=f"image={python_image} tmp-size=40m shm-size=24m",
    )

    assert run.measured[0].item_unit == "tmp=40+shm=24"


def test_a_tag_is_refused_with_the_next_step(project, tag):
    code, said = refused(project, "--container", f"image={tag}")

    assert code == ExitCode.USAGE
    assert f"next: `ci-perf pin {tag}`" in said
    assert "allow-unpinned=true" in said


def test_a_tag_that_is_taken_all_the_same_marks_the_run(project, tag):
    done, run = measured(
        project, "--container", f"image={tag}", "--container", "allow-unpinned=true"
    )

    assert "degraded: unpinned_image: " in done.err
    assert "unpinned_image" in {reason.code for reason in run.validity.reasons}
    assert run.environment.image.reference == tag
    assert not run.environment.image.is_pinned


def test_without_any_image_it_says_where_to_name_one(project):
    code, said = refused(project)

    assert code == ExitCode.USAGE
    assert "--runner docker: expected an image for the head, found none" in said
    assert "`ci-perf pin`" in said


def test_the_owner_of_a_runner_says_which_images_suite_toml_may_name(pinned, python_image):
    allowed = ("--container", "allow-image=registry.example/team")

    code, said = refused(pinned, *allowed)

    assert code == ExitCode.USAGE
    assert f"suite.toml of the head: image {python_image}: expected one of registry.example" in said
    assert measured(pinned, *allowed, "--container", f"image={python_image}")


def test_a_builtin_workload_lies_beside_the_project(project, python_image):
    """It needs torch, which this image does not have: where it was looked for is enough."""
    line = ("run", "matmul.size=256", "--suite", "builtin:smoke", "--processes", "1")
    done = project.run(
        *line, "--runner", "docker", "--device", "cpu", "--container", f"image={python_image}"
    )

    (failed,) = files.read(project.root / "run.json", Run).failed
    assert done.code == ExitCode.NO_ANSWER
    assert '"/suite/matmul.py"' in failed.output
    assert "No module named 'torch'" in failed.output


def test_a_workload_that_leads_out_of_the_checkout_is_refused(pinned, tmp_path):
    file = pinned.root / "workloads/room.py"
    file.rename(tmp_path / "room.py")
    file.symlink_to(tmp_path / "room.py")

    code, said = refused(pinned)

    assert code == ExitCode.USAGE
    assert "found a link that leads to" in said
