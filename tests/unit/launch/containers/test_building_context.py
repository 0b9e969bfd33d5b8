import pytest

from ci_perf.errors import InvalidFileError
from ci_perf.launch.containers import building


@pytest.fixture
def folder(tmp_path):
    for name in ("README.md", "src/main.py", "src/deep/old.pyc", "docs/a.md", "docs/b.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


def visible(folder, *patterns):
    (folder / ".dockerignore").write_text("\n".join(patterns))
    return [str(path) for path in building.visible_files(folder) if path.name != ".dockerignore"]


def test_without_patterns_all_is_seen_sorted(folder):
    assert [str(path) for path in building.visible_files(folder)] == [
        *("README.md", "docs/a.md", "docs/b.md", "src/deep/old.pyc", "src/main.py")
    ]


def test_of_all_that_is_ignored_an_exception_opens_what_it_names(folder):
    assert visible(folder, "*", "!src", "**/*.pyc") == ["src/main.py"]


def test_the_last_pattern_decides(folder):
    assert "docs/a.md" in visible(folder, "docs", "!docs/a.md")
    assert "docs/a.md" not in visible(folder, "!docs/a.md", "docs")


def test_a_star_stops_at_a_folder_and_two_do_not(folder):
    assert "src/deep/old.pyc" in visible(folder, "*.pyc")
    assert "src/deep/old.pyc" in visible(folder, "src/*.pyc")
    assert "src/deep/old.pyc" not in visible(folder, "src/**/*.pyc")


def test_comments_and_empty_lines_say_nothing(folder):
    assert "docs/a.md" in visible(folder, "", "# docs", "  ")


def test_a_link_is_seen_and_not_followed(folder, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "secret").write_text("")
    (folder / "link").symlink_to(elsewhere)

    assert [path for path in visible(folder) if "link" in path] == ["link"]


def test_an_ignore_file_that_is_no_text_is_named(folder):
    (folder / ".dockerignore").write_bytes(b"\xff")

    with pytest.raises(InvalidFileError, match=r"\.dockerignore: expected UTF-8"):
        building.visible_files(folder)
