import json

import pytest
from click.testing import CliRunner

from ci_perf.cli import main
from ci_perf.errors import CannotWriteError, UsageError
from tests import branches
from tests.branches import a_recorded


@pytest.fixture
def branch(tmp_path, monkeypatch):
    made = branches.init(tmp_path / "project")
    made.accept(a_recorded("r1"), a_recorded("r2", 2e-3, reason="meant", epochs={"step_time_s": 1}))
    monkeypatch.chdir(made.root)
    monkeypatch.setenv("COLUMNS", "120")  # no cell of a table is broken into two lines
    return made


def typed(*words):
    return CliRunner().invoke(main.cli, ["history", *words], standalone_mode=False)


def test_each_form_goes_where_it_was_asked_for(branch):
    assert "▲ w step time +100 %" in typed().stdout
    assert json.loads(typed("--format", "json").stdout)["type"] == "history"
    assert typed("--format", "csv").stdout.count("step_time_s") == 2
    assert "index.html" in typed("-o", "site").stderr
    assert (branch.root / "site/index.html").is_file()
    typed("--format", "parquet", "-o", "table.parquet")
    assert (branch.root / "table.parquet").read_bytes()[:4] == b"PAR1"


@pytest.mark.usefixtures("branch")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--format", "html"], "name a folder with -o"),
        (["-o", "baselines"], "would overwrite baselines"),
        (["--format", "parquet"], "name a file with --output"),
        (["--measure", "main", "--format", "csv"], "expected --format terminal or json"),
        (["--measure", "main"], "expected FROM..TO"),
    ],
)
def test_what_has_no_place_to_go_is_refused(words, said):
    done = typed(*words)

    assert isinstance(done.exception, UsageError)
    assert said in str(done.exception)


@pytest.mark.parametrize("name", ["history.json", "badge.svg"])
def test_nothing_is_written_where_one_of_the_files_cannot_be(branch, name):
    (branch.root / "site" / name).mkdir(parents=True)

    done = typed("-o", "site")

    assert isinstance(done.exception, CannotWriteError)
    assert name in str(done.exception)
    assert [path.name for path in (branch.root / "site").iterdir()] == [name]


def test_without_baselines_no_folder_is_left(branch):
    done = typed("--baselines", "elsewhere", "-o", "site")

    assert "expected commits that change elsewhere" in str(done.exception)
    assert not (branch.root / "site").exists()


@pytest.mark.parametrize("address", ["javascript:alert(1)", "http://octo.example", "https://a) [b"])
def test_a_comment_links_only_to_an_https_address(address):
    done = CliRunner().invoke(
        main.cli,
        ["github", "publish", f"--history-url={address}", "comparison.json"],
        standalone_mode=False,
    )

    assert "expected an address that begins with https://" in str(done.exception)
