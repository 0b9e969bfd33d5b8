import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from ci_perf.errors import CannotWriteError, InvalidFileError
from ci_perf.model.run import Run
from ci_perf.system import files
from tests.runs import a_failed, a_measured, a_run


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "this file does not exist"),
        (b"", "expected a JSON document written by ci-perf, found an empty file"),
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


READ = (
    "import sys; from pathlib import Path; from ci_perf.system import files; "
    "print(files.read_text(Path(sys.argv[1])))"
)


def make_pipe(path):
    os.mkfifo(path)


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def make_link_to_a_device(path):
    path.symlink_to("/dev/zero")


def make_link_to_stdin(path):
    """A pipe or a terminal, which the shell of the job has opened, and nobody writes to."""
    path.symlink_to("/dev/fd/0")


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (make_pipe, "a pipe"),
        (make_socket, "a socket"),
        (make_link_to_a_device, "a device"),
        (make_link_to_stdin, "a pipe"),
    ],
)
def test_what_is_no_regular_file_is_refused_at_once(make, found, tmp_path):
    """In another process, which would wait for ever for what nobody writes."""
    path = tmp_path / "mlp.json"
    make(path)
    stdin, writer = os.pipe()
    try:
        done = subprocess.run(
            [sys.executable, "-c", READ, path],
            stdin=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(stdin)
        os.close(writer)

    assert f"{path}: expected a file, found {found}" in done.stderr


def test_what_a_shell_pipes_into_an_argument_is_read():
    line = f"\"{sys.executable}\" -c '{READ}' <(echo hello)"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)

    assert done.stdout == "hello\n\n"


def test_a_full_disk_leaves_the_old_file_and_no_litter(tmp_path):
    """The kernel's file size limit stands in for a full disk: the same error, on write."""
    path = tmp_path / "run.json"
    path.write_text("old")
    code = textwrap.dedent(
        """
        import resource, sys
        from pathlib import Path
        from ci_perf.system import files
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

    assert "cannot be written: File too large; the old content is intact" in done.stdout
    assert path.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["run.json"]


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


def test_what_we_would_refuse_to_read_is_never_written(tmp_path):
    path = tmp_path / "run.json"
    path.write_text("old")

    with pytest.raises(CannotWriteError, match=r"run\.json: cannot be written: ") as caught:
        files.write(path, a_run(a_measured("good", 1e-3), a_failed("my workload")))

    caught.match(r"\$\.failed\[0\]\.workload: .*, found \"my workload\"; the old content is intact")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_would_be_too_large_to_read_is_never_written(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_BYTES", 100)

    with pytest.raises(CannotWriteError, match="ci-perf reads 0 MiB at most"):
        files.write(tmp_path / "run.json", a_run(a_measured("a", 1e-3)))

    assert list(tmp_path.iterdir()) == []


def test_a_number_that_json_cannot_spell_is_never_written(tmp_path):
    with pytest.raises(CannotWriteError, match=r"parameters.*found null"):
        files.write(
            tmp_path / "run.json", a_run(a_measured("a", 1e-3, parameters={"d": float("inf")}))
        )


def test_text_that_is_not_unicode_is_written_with_question_marks(tmp_path):
    files.write_text(tmp_path / "report.md", "caf\udce9")

    assert files.read_text(tmp_path / "report.md") == "caf?"


def test_the_longest_name_that_a_file_may_have_can_be_written(tmp_path):
    path = tmp_path / ("x" * 255)

    files.check_target(path)
    files.write_text(path, "x")

    assert files.read_text(path) == "x"


@pytest.mark.parametrize("job", [files.check_target, lambda path: files.write_text(path, "x")])
def test_a_name_that_is_too_long_is_a_clear_error(tmp_path, job):
    with pytest.raises(CannotWriteError, match="cannot be written: File name too long"):
        job(tmp_path / ("x" * 300))
    with pytest.raises(InvalidFileError, match="cannot be read: File name too long"):
        files.read_text(tmp_path / ("x" * 300))


@pytest.mark.parametrize("job", [files.check_target, lambda path: files.write_text(path, "x")])
def test_a_circle_of_links_is_a_clear_error_and_stays_as_it_is(tmp_path, job):
    there, back = tmp_path / "there", tmp_path / "back"
    there.symlink_to(back)
    back.symlink_to(there)

    with pytest.raises(CannotWriteError, match="Too many levels of symbolic links"):
        job(there)
    with pytest.raises(InvalidFileError, match="Too many levels of symbolic links"):
        files.read_text(there)
    assert there.is_symlink()


def test_a_user_without_a_home_has_a_cache(monkeypatch):
    """As containers have it: HOME is unset, and no password file knows the user."""
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    assert files.cache_folder(homeless).name == "ci-perf"


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A repository, which is the current folder."""
    (tmp_path / "project/.git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def test_an_output_is_not_written_through_a_link_out_of_the_repository(checkout, tmp_path):
    (checkout / "run.json").symlink_to("../precious.txt")
    (checkout / "out").symlink_to(tmp_path)

    for path in (Path("run.json"), checkout / "out/run.json"):
        with pytest.raises(CannotWriteError, match="found a link that leads to"):
            files.check_target(path)


def test_a_link_to_another_repository_leaves_this_one(checkout, tmp_path):
    (tmp_path / "other/.git").mkdir(parents=True)
    (checkout / "out").symlink_to(tmp_path / "other")

    with pytest.raises(CannotWriteError, match="found a link that leads to"):
        files.check_target(Path("out/run.json"))


def test_outputs_elsewhere_and_links_within_are_no_matter(checkout, tmp_path):
    (checkout / "run.json").symlink_to(checkout / "results.json")
    (tmp_path / "same").symlink_to(checkout)

    for path in (Path("run.json"), Path("../elsewhere.json"), tmp_path / "same/x.json"):
        files.check_target(path)
