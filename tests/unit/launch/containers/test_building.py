import hashlib
import re

import pytest

from ci_perf.errors import UsageError
from ci_perf.launch.containers import building
from ci_perf.launch.containers.building import Recipe
from tests import repositories

BASE = f"registry.example/torch:2.13@sha256:{'a' * 64}"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "Dockerfile").write_text(f"ARG BASE_IMAGE={BASE}\nFROM ${{BASE_IMAGE}}\n")
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements/container.txt").write_text("numpy==2.4.6 --hash=sha256:00\n")
    (tmp_path / "start.sh").write_text("true\n")
    return tmp_path


def recipe(folder, **changes):
    return Recipe(context=folder, dockerfile=folder / "Dockerfile", **changes)


def inputs(folder, **changes):
    return building.inputs(recipe(folder, **changes))


def labels(folder, **changes):
    return building.labels(recipe(folder, **changes), "sha256:0")


def test_the_hash_of_the_inputs_is_the_same_wherever_they_lie(folder, tmp_path_factory):
    copy = tmp_path_factory.mktemp("copy")
    for path in sorted(folder.rglob("*"), reverse=True):
        (copy / path.relative_to(folder)).parent.mkdir(exist_ok=True)
        if path.is_file():
            (copy / path.relative_to(folder)).write_bytes(path.read_bytes())

    assert re.fullmatch(r"sha256:[0-9a-f]{64}", inputs(folder))
    assert inputs(copy) == inputs(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "Dockerfile").write_text("FROM scratch\n"),
        lambda folder: (folder / "requirements/container.txt").write_text(""),
        lambda folder: (folder / "start.sh").write_text("false\n"),
        lambda folder: (folder / "start.sh").chmod(0o755),
        lambda folder: (folder / "start.sh").rename(folder / "begin.sh"),
        lambda folder: (folder / "start").symlink_to("start.sh"),
    ],
    ids=["dockerfile", "lock", "content", "executable", "name", "link"],
)
def test_whatever_goes_in_changes_the_hash(folder, change):
    before = inputs(folder)

    change(folder)

    assert inputs(folder) != before


def test_the_base_and_the_arguments_change_the_hash(folder):
    hashes = [
        inputs(folder),
        inputs(folder, base=BASE),
        inputs(folder, arguments={"A": "1"}),
        inputs(folder, arguments={"A": "2"}),
    ]

    assert len(set(hashes)) == 4


def test_what_does_not_go_in_and_where_files_come_from_change_nothing(folder):
    (folder / ".dockerignore").write_text("*.log\n")
    before = inputs(folder)

    (folder / "build.log").write_text("long")

    mirror = {"PIP_INDEX_URL": "https://name:password@mirror.example/simple"}
    assert inputs(folder, arguments=mirror) == before


def test_a_base_with_a_digest_is_told_by_name_and_digest(folder):
    told = labels(folder)

    assert told["org.opencontainers.image.base.name"] == "registry.example/torch:2.13"
    assert told["org.opencontainers.image.base.digest"] == f"sha256:{'a' * 64}"


def test_the_base_that_was_asked_for_is_told_instead_of_the_dockerfiles(folder):
    told = labels(folder, base="other")

    assert told["org.opencontainers.image.base.name"] == "other"
    assert "org.opencontainers.image.base.digest" not in told


def test_inputs_and_lock_are_told(folder):
    lock = (folder / "requirements/container.txt").read_bytes()

    assert labels(folder)["dev.ci_perf.inputs"] == "sha256:0"
    assert labels(folder)["dev.ci_perf.lock"] == f"sha256:{hashlib.sha256(lock).hexdigest()}"


def test_the_commit_is_told_and_whether_it_is_what_was_built(tmp_path):
    repository = repositories.init(tmp_path / "r")
    commit = repository.commit(Dockerfile="FROM scratch\n")

    clean = labels(repository.root)
    (repository.root / "Dockerfile").write_text("FROM other\n")

    assert clean["org.opencontainers.image.revision"] == commit
    assert labels(repository.root)["org.opencontainers.image.revision"] == f"{commit}-dirty"


def test_what_is_not_known_is_not_told(folder, monkeypatch):
    monkeypatch.delenv("GITHUB_SHA", raising=False)
    (folder / "Dockerfile").write_text("FROM scratch\n")
    (folder / "requirements/container.txt").unlink()

    assert set(labels(folder)) == {"dev.ci_perf.inputs", "org.opencontainers.image.version"}


@pytest.mark.parametrize("base", ["", f"sha256:{'b' * 64}", f"other@sha256:{'b' * 64}"])
def test_a_base_that_can_be_no_other_tomorrow_is_taken(folder, base):
    building.check_base(recipe(folder, base=base))


@pytest.mark.parametrize("base", ["torch", "torch:latest", "registry.example/torch:2.13"])
def test_a_base_that_may_be_another_one_tomorrow_is_refused(folder, base):
    with pytest.raises(UsageError, match=f"{base}: expected one with its digest"):
        building.check_base(recipe(folder, base=base))


def test_the_default_of_a_dockerfile_is_held_to_the_same(folder):
    (folder / "Dockerfile").write_text("ARG BASE_IMAGE=torch:2.13\nFROM ${BASE_IMAGE}\n")

    with pytest.raises(UsageError, match="torch: expected one with its digest"):
        building.check_base(recipe(folder))


def test_a_base_that_is_given_as_an_argument_is_held_to_the_same(folder):
    given = {"BASE_IMAGE": "torch:2.13"}

    with pytest.raises(UsageError, match=r"torch:2\.13: expected one with its digest"):
        building.check_base(recipe(folder, arguments=given))
    assert labels(folder, arguments=given)["org.opencontainers.image.base.name"] == "torch:2.13"


@pytest.mark.parametrize(
    "line",
    ["FROM python:3.13", "from --platform=linux/amd64 python:3.13 as b", "FROM \\\n  python:3.13"],
)
def test_an_image_that_from_names_itself_is_held_to_the_same(folder, line):
    (folder / "Dockerfile").write_text(
        f"# FROM other\nFROM {BASE} AS a\n{line}\nCOPY --from=a / /\n"
    )

    with pytest.raises(UsageError, match=r"python:3\.13: expected one with its digest"):
        building.check_base(recipe(folder))


@pytest.mark.parametrize("last", ["a", "A", "scratch", f"sha256:{'b' * 64}", "$ANY", "${ANY}"])
def test_a_stage_an_id_and_an_argument_need_no_digest(folder, last):
    (folder / "Dockerfile").write_text(f"FROM {BASE} AS a\nRUN make\nFROM {last}\n")

    building.check_base(recipe(folder))


def test_a_list_that_only_some_engines_obey_is_refused(folder):
    building.check_ignored(recipe(folder))
    (folder / "Dockerfile.dockerignore").write_text("*\n")

    with pytest.raises(UsageError, match=r"Dockerfile\.dockerignore: expected no such file"):
        building.check_ignored(recipe(folder))
