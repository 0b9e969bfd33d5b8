import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from ci_perf import files
from ci_perf.errors import CannotWriteError, InvalidFileError
from ci_perf.model.run import Run
from tests.runs import a_measured, a_run


def test_a_document_survives_the_disk(tmp_path):
    run = a_run(a_measured("a", 1e-3))

    files.write(tmp_path / "run.json", run)

    assert files.read(tmp_path / "run.json", Run) == run


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "expected a file, found nothing"),
        (b"", "expected a JSON document written by ci-perf, found nothing"),
        (b'{"type": "run", "sch', "Was the file cut off"),
        (b"\xff\xfe{}", "expected UTF-8, found byte 0xff at offset 0"),
        (b" " * (files.MAX_BYTES + 1), "expected at most 50 MiB"),
    ],
    ids=["missing", "empty", "truncated", "not UTF-8", "huge"],
)
def test_an_unreadable_file_is_named_with_what_was_expected(tmp_path, content, message):
    path = tmp_path / "run.json"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(InvalidFileError, match=message) as caught:
        files.read(path, Run)
    assert str(caught.value).startswith(str(path))


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(InvalidFileError, match="expected a file, found a folder"):
        files.read(tmp_path, Run)
    with pytest.raises(CannotWriteError, match="Is a directory"):
        files.write_text(tmp_path, "x")


def test_a_full_disk_leaves_the_old_file_and_no_litter(tmp_path):
    """The kernel's file size limit stands in for a full disk: the same error, on write."""
    path = tmp_path / "run.json"
    path.write_text("old")
    code = textwrap.dedent(
        """
        import resource, sys
        from pathlib import Path
        from ci_perf import files
        from ci_perf.errors import CannotWriteError
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        try:
            files.write_text(Path(sys.argv[1]), "x" * 1000)
        except CannotWriteError as error:
            print(error)
        """
    )

    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=True
    )

    assert "cannot be written: File too large; what stood there before is intact" in done.stdout
    assert path.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["run.json"]


def test_a_read_only_folder_is_a_clear_error(tmp_path):
    """Root may write anywhere, so the child gives its rights away first."""
    tmp_path.chmod(0o755)
    code = textwrap.dedent(
        """
        import os, sys
        from pathlib import Path
        from ci_perf import files
        from ci_perf.errors import CannotWriteError
        if os.getuid() == 0:
            os.setuid(65534)
        try:
            files.write_text(Path(sys.argv[1]) / "x", "x")
        except CannotWriteError as error:
            print(error)
        """
    )
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o555)
    for parent in folder.parents:
        if parent.stat().st_uid == os.getuid() and parent != parent.parent:
            parent.chmod(parent.stat().st_mode | 0o055)

    done = subprocess.run(
        [sys.executable, "-c", code, folder], capture_output=True, text=True, check=False
    )

    assert "cannot be written: Permission denied" in done.stdout, done.stderr


def test_a_device_is_written_directly_and_a_full_one_is_an_error():
    with pytest.raises(CannotWriteError, match="/dev/full: cannot be written: No space left"):
        files.write_text(Path("/dev/full"), "x")


def test_mode_and_link_of_an_existing_file_stay(tmp_path):
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)

    files.write_text(link, "new")

    assert link.is_symlink()
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o600
