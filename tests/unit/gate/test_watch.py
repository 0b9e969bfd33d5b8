"""Files that somebody edits while nothing else happens: each wait is a step of a script."""

import itertools

import pytest

from ci_perf.errors import CiPerfError
from ci_perf.gate import check
from tests import repositories


@pytest.fixture
def repository(tmp_path):
    made = repositories.init(tmp_path / "repository")
    made.commit(product_py="1", data_bin="1")
    return made


def seen(root, *steps, turns):
    """Return what changes are yielded while each wait does the next of the steps."""
    script = itertools.chain(steps, itertools.repeat(lambda: None))

    def wait():
        next(script)()

    return list(itertools.islice(check.changes(root, wait=wait), turns))


def test_the_first_turn_waits_for_nothing(repository):
    assert seen(repository.root, turns=1) == [()]


def test_what_changes_is_named_once_it_rests(repository):
    root = repository.root
    edits = [
        lambda: (root / "product.py").write_text("22"),
        lambda: (root / "product.py").write_text("333"),
        lambda: None,
        lambda: None,
        (root / "data.bin").unlink,
    ]

    assert seen(root, *edits, turns=3) == [(), ("product.py",), ("data.bin",)]


def test_a_new_workload_counts_and_what_a_check_writes_does_not(repository):
    root = repository.root
    edits = [
        lambda: (root / "run.json").write_text("{}"),
        lambda: (root / "cache.bin").write_text("1"),
        lambda: (root / "new.py").write_text("1"),
    ]

    assert seen(root, *edits, turns=2) == [(), ("new.py",)]


def test_without_git_nobody_can_say_which_files_count(tmp_path):
    with pytest.raises(CiPerfError, match="not a git repository"):
        seen(tmp_path, turns=1)
