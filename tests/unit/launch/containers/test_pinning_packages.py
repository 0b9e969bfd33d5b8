"""With the real uv, and with wheels that it finds in a folder: no index is asked."""

from pathlib import Path

import pytest

from ci_perf.errors import UsageError
from ci_perf.launch.containers import pinning
from ci_perf.launch.containers.pinning import LockRequest
from tests.containers import wheels


@pytest.fixture
def lock(tmp_path, monkeypatch):
    """Lock requirements against a few packages; return the lock."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(folder))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    wheels.make(folder, "nvidia-cuda", "12.6")
    wheels.make(folder, "torch", "2.13.0", requires=["nvidia-cuda==12.6"])
    wheels.make(folder, "trainer", "1.0", requires=["torch>=2"])
    wheels.make(folder, "trainer", "1.1", requires=["torch>=2"])

    def lock(*lines, **changes):
        source, output = tmp_path / "needs.in", tmp_path / "locks/needs.txt"
        source.write_text("".join(f"{line}\n" for line in lines))
        pinning.lock_requirements(
            LockRequest(sources=[source], **changes), output, header="make lock"
        )
        return output.read_text()

    return lock


def names(text):
    return [line.partition(" ")[0] for line in text.splitlines() if line[:1].isalpha()]


def test_every_version_is_exact_and_has_hashes(lock):
    text = lock("trainer")

    assert names(text) == ["trainer==1.1"]
    assert "--hash=sha256:" in text


@pytest.mark.parametrize("asked", ["torch", "torch==2.13.0", "torch>=99", "trainer"])
def test_neither_torch_nor_what_only_torch_needs_is_locked(lock, asked):
    assert [name for name in names(lock(asked)) if "trainer" not in name] == []


@pytest.mark.parametrize(
    ("line", "is_named"),
    [
        *(
            (line, True)
            for line in ("torch", " Torch>=2 # new", "torch[opt]", "torch ; x", "torch@x")
        ),
        *((line, False) for line in ("torchvision", "torch-geometric", "# torch", "trainer", "")),
    ],
)
def test_a_torch_that_is_asked_for_is_noticed(tmp_path, line, is_named):
    source = tmp_path / "needs.in"
    source.write_text(f"numpy\n{line}\n")

    assert pinning.asks_for_torch(LockRequest(sources=[source])) == is_named


@pytest.mark.parametrize(
    ("chosen", "is_named"),
    [
        ({}, False),
        ({"extras": ["gpu"]}, True),
        ({"groups": ["all"]}, True),
        ({"groups": ["no"]}, False),
    ],
)
def test_a_torch_of_a_pyproject_is_noticed_where_it_is_chosen(tmp_path, chosen, is_named):
    source = tmp_path / "pyproject.toml"
    source.write_text(
        '[project]\nname = "x"\ndependencies = ["numpy"]\n'
        '[project.optional-dependencies]\ngpu = ["torch==2.13.0"]\n'
        '[dependency-groups]\nall = [{include-group = "no"}, "torch"]\nno = ["numpy"]\n'
    )

    assert pinning.asks_for_torch(LockRequest(sources=[source], **chosen)) == is_named


def test_no_address_gets_into_a_lock(lock, tmp_path):
    text = lock("trainer")

    assert str(tmp_path / "wheels") not in text
    assert "://" not in text
    assert "find-links" not in text


def test_a_lock_says_how_it_is_made_again(lock):
    assert "make lock" in lock("trainer").splitlines()[1]


def test_a_version_that_is_locked_stays_until_the_file_is_removed(lock, tmp_path):
    lock("trainer<1.1")

    assert names(lock("trainer")) == ["trainer==1.0"]

    (tmp_path / "locks/needs.txt").unlink()

    assert names(lock("trainer")) == ["trainer==1.1"]


def test_constraints_hold(lock, tmp_path):
    bound = tmp_path / "constraints.txt"
    bound.write_text("trainer==1.0\n")

    assert names(lock("trainer", constraints=[bound])) == ["trainer==1.0"]


def test_what_cannot_be_locked_leaves_the_lock_as_it_was_and_says_why(lock, tmp_path):
    before = lock("trainer")

    with pytest.raises(UsageError, match=r"needs\.in: expected requirements") as caught:
        lock("trainer>=7")

    assert "trainer>=7" in caught.value.output
    assert (tmp_path / "locks/needs.txt").read_text() == before


def test_without_uv_it_is_named():
    with pytest.raises(UsageError, match="uv: expected its program"):
        pinning.uv("/nowhere", has_module=False)


def test_a_uv_on_the_path_will_do(tmp_path):
    program = tmp_path / "uv"
    program.write_text("")
    program.chmod(0o755)

    assert pinning.uv(str(tmp_path), has_module=False) == [str(program)]


def test_a_lock_is_called_like_its_requirements():
    assert pinning.default_output(Path("docker/mine.in")) == Path("docker/mine.txt")

    with pytest.raises(UsageError, match=r"mine\.txt: expected a name that ends in \.in"):
        pinning.default_output(Path("mine.txt"))


def test_what_would_run_code_to_be_built_is_refused(lock, tmp_path):
    (tmp_path / "wheels/source-1.0.tar.gz").write_bytes(b"")

    with pytest.raises(UsageError) as caught:
        lock("source")

    assert "no wheels" in caught.value.output or "no usable wheels" in caught.value.output
