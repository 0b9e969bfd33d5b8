"""`--against` in containers: each side in the image that its own commit pins, and set up there."""

import contextlib
import json
import re

import pytest

from ci_perf.errors import ExitCode
from ci_perf.model.run import Run
from ci_perf.system import files
from tests import repositories
from tests.features.containers.helpers import roots
from tests.projects import NAP_SETTINGS, Project

pytestmark = [pytest.mark.container, pytest.mark.usefixtures("in_docker")]

# A step that takes as long as its image says.
NAP = '''
"""Sleeps as long as the image says."""
import time
from pathlib import Path
from ci_perf.workload import Workload
SECONDS = float(Path("/etc/seconds").read_text())
def step():
    time.sleep(SECONDS)
'''
# The same as `setup` says, which works in the image of its side alone.
BUILT = NAP.replace("/etc/seconds", "build/seconds")
FAST, SLOW = "0.005", "0.02"
OTHER = "0.0.9"
AGAINST = ("--against", "HEAD")
SETUP = f"""
[setup]
command = '''
case "$CI_PERF_SIDE $(cat /etc/seconds)" in
  "base {FAST}"|"head {SLOW}") mkdir build && echo {FAST} > build/seconds ;;
  *) exit 7 ;;
esac'''
"""


@pytest.fixture(scope="module")
def variants(docker, python_image, tmp_path_factory):
    """Images that differ by one file."""
    with contextlib.ExitStack() as stack:
        yield {
            text: stack.enter_context(a_variant(docker, python_image, text, tmp_path_factory))
            for text in (FAST, SLOW)
        }


@contextlib.contextmanager
def a_variant(docker, image, text, folders):
    """An image whose file and whose package `product` say how long a step takes."""
    folder = folders.mktemp("variant")
    seconds, ours = folder / "seconds", folder / "ci_perf"
    seconds.write_text(text)
    packages = {"product": text}
    if text == FAST:
        # An image may have another ci_perf, which measures nothing: that of the host is mounted.
        packages["ci_perf"] = OTHER
    ours.mkdir()
    (ours / "__init__.py").write_text(f'__version__ = "{OTHER}"\n')
    site = roots.find_site_packages()
    container = docker.must("create", image, "x")
    docker.must("cp", str(seconds), f"{container}:/etc/seconds")
    for name, version in packages.items():
        info = folder / f"{name}-{version}.dist-info"
        info.mkdir()
        said = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (info / "METADATA").write_text(said)
        docker.must("cp", f"{info}/.", f"{container}:{site}/{info.name}")
    docker.must("cp", f"{ours}/.", f"{container}:{site}/ci_perf")
    variant = docker.must("commit", container)
    docker.must("rm", container)
    yield variant
    docker.must("rmi", "--no-prune", variant)


class App:
    """A repository whose suite.toml names an image."""

    def __init__(self, root):
        self.git = repositories.init(root)
        self.project = Project(root)

    def commit(self, image, *, body=NAP, setup=""):
        """Commit what is measured, and in which image."""
        container = f'[container]\nimage = "{image}"\n' if image else ""
        self.project.workload("nap", body)
        self.project.suite("nap", settings=setup + container + NAP_SETTINGS, device="cpu")
        self.git.commit()

    def branch(self):
        self.git.ask("switch", "--quiet", "--create", "branch")

    def record(self):
        """Measure what is checked out, and commit the baseline."""
        self.run("run", "--runner", "docker", "-o", "../base.json")
        self.run("accept", "../base.json", "--reason", "First baseline")
        self.git.commit()

    def run(self, *line):
        """Run a command that goes well."""
        done = self.project.run(*line)
        assert done.code == ExitCode.OK, done.err

    def check(self, *more):
        """Check against main; return how it ended."""
        outputs = ("--report", "../report.md", "-o", "../run.json")
        return self.project.run("check", "--runner", "docker", "--against", "main", *outputs, *more)

    def report(self):
        return (self.project.root.parent / "report.md").read_text()

    def notes(self):
        interleaved = files.read(self.project.root.parent / "run.json", Run).interleaved
        assert interleaved is not None
        return interleaved.notes


@pytest.fixture
def app(tmp_path):
    return App(tmp_path / "app")


@pytest.fixture
def recorded(app, variants):
    """A branch that begins at a baseline, measured in the fast image."""
    app.commit(variants[FAST])
    app.record()
    app.branch()
    return app


def short(image):
    """Return what is shown of an id."""
    return image[: len("sha256:") + 12]


def test_an_image_that_makes_it_slower_is_judged_by_pairs_and_one_for_both_sides_is_no_news(
    recorded, variants
):
    recorded.commit(variants[SLOW])
    fast, slow = short(variants[FAST]), short(variants[SLOW])

    one_image = recorded.check("--container", f"image={variants[FAST]}")

    assert one_image.code == ExitCode.OK, one_image.err
    assert "each side in the image" not in one_image.err
    assert "The environment differs: `image`" not in recorded.report()

    done = recorded.check()
    recorded.run("accept", "../run.json", "--reason", "A slower image")

    report = recorded.report()
    note, version = recorded.notes()
    assert done.code == ExitCode.REGRESSED, done.err
    assert f"⚠️ The environment differs: `image` `{fast}` → `{slow}`" in report
    assert re.search(r"\| ❌ .*pairs", report)
    assert f"the head is measured in {slow}, the base, where it is launched, in {fast}" in note
    assert f"note: {note}" in done.err
    assert f"{fast} has ci_perf {OTHER}; that of this host" in version
    assert len(recorded.git.worktrees()) == 1
    diff = recorded.git.ask("diff", "--unified=0", "--", "baselines").splitlines()
    (line,) = [line for line in diff if '"image"' in line]
    assert line.startswith("+")
    assert f'"image": "{slow}"' in line


def test_a_base_that_names_no_image_is_measured_in_that_of_the_head(app, variants):
    app.commit("")
    app.branch()
    app.commit(variants[FAST])

    done = app.check()

    assert done.code == ExitCode.OK, done.err
    (note,) = app.notes()
    assert f"{short(variants[FAST])} has ci_perf {OTHER}; that of this host" in note
    assert done.err.count(f"note: {note}") == 1
    assert note in app.report()
    assert "pairs" in app.report()


def test_a_base_whose_suite_toml_cannot_be_read_is_named_and_compares_with_nothing(app, variants):
    app.commit(f"sha256:{'x' * 64}")
    app.branch()
    app.commit(variants[FAST])

    done = app.check()

    assert done.code == ExitCode.NO_ANSWER
    assert "the base: workloads/suite.toml: $.container.image" in done.err
    assert "not comparable" in done.err
    assert len(app.git.worktrees()) == 1


def test_setup_runs_in_the_image_of_its_side_and_changes_no_checkout(app, variants):
    app.commit(variants[FAST], body=BUILT, setup=SETUP)
    app.branch()
    app.commit(variants[SLOW], body=BUILT, setup=SETUP)

    done = app.check()

    assert done.code == ExitCode.OK, done.err
    assert "setup of the head" in done.err
    assert "setup of the base" in done.err
    assert app.git.ask("status", "--porcelain", "--ignored") == ""


def upgrade(app, base, head, *more):
    """Check what is committed beside itself, each side in its image; return how it ended."""
    images = ("--base-image", base, "--container", f"image={head}")
    return app.check("--against", "HEAD", *images, *more)


def test_two_images_with_one_commit_are_judged_by_pairs_and_named(app, variants):
    app.commit("")

    same = upgrade(app, variants[FAST], variants[FAST])

    assert same.code == ExitCode.OK, same.err
    assert "Both environments have the same Python and packages. Images: " in app.report()
    assert app.report().count(variants[FAST]) >= 2
    assert same.err.count(f"has ci_perf {OTHER}") == 1

    done = upgrade(app, variants[FAST], variants[SLOW])

    assert done.code == ExitCode.REGRESSED, done.err
    report = app.report()
    (note,) = app.notes()[1:]
    assert f"{short(variants[FAST])} has ci_perf {OTHER}; that of this host" in note
    assert f"The environments differ (base → head): `product` `{FAST}` → `{SLOW}`." in report
    assert f"Images: `{variants[FAST]}` → `{variants[SLOW]}`." in report
    run = json.loads((app.project.root.parent / "run.json").read_text())
    assert run["interleaved"]["environment"]["image"] == variants[FAST]
    assert run["environment"]["image"]["reference"] == variants[SLOW]
    refused = app.project.run("accept", "../run.json", "--reason", "Slower.")
    assert "another Python launched" in refused.err


def test_an_image_that_cannot_launch_the_base_is_named(app, variants, shell_image):
    app.commit("")
    absent = f"localhost:1/absent@sha256:{'0' * 64}"

    for base, said in [(absent, "localhost:1/absent@sha256:0"), (shell_image, "python3")]:
        done = upgrade(app, base, variants[FAST])

        assert done.code not in {ExitCode.OK, ExitCode.REGRESSED}
        assert base in done.err
        assert said in done.err
    without = app.project.run("check", "--runner", "docker", "--base-image", absent, *AGAINST)
    assert "expected an image for the head, found none" in without.err
