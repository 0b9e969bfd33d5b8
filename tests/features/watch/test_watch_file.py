"""The file that a watch goes on with: of this repository and suite alone."""

import json
from pathlib import Path

import pytest

from ci_perf.errors import InvalidFileError, UsageError
from ci_perf.features.watch import watch
from ci_perf.features.watch.branch_line import read_line
from ci_perf.features.watch.report import build_page
from ci_perf.model import codec
from ci_perf.model.environment import CpuMachine
from ci_perf.report import tables
from ci_perf.system import files
from tests import repositories
from tests.reviewed import assert_all_reviewed
from tests.watches import DAY, a_creep, a_culprit, a_row, a_sha, a_watch

pytestmark = pytest.mark.usefixtures("lone_git")

GOLDEN = Path(__file__).parent / "golden/watches.md"
SHAPES = {
    "a commit is open": a_watch(),
    "closed, and nothing is left": a_watch(
        culprits=(
            a_culprit(7, state="repaired", reason="pairs of a and b agree", cause=None),
            a_culprit(9, "a", "b", state="accepted", reason="a better | loss"),
            a_culprit(10, rows=(a_row(metric="graph_breaks", change=None, low=None, high=None),)),
        ),
        creeps=(a_creep(state="repaired"), a_creep(workload="e", largest=())),
        suspicions=(),
        no_answer=(),
        complete=False,
        notes=("uncommitted changes are in the session of HEAD, and not in pairs",),
    ),
}


def test_the_page_reads_as_reviewed():
    assert_all_reviewed(
        {name: tables.markdown(build_page(shape)) for name, shape in SHAPES.items()}, GOLDEN
    )


def test_a_command_is_shown_whole():
    long = a_watch(culprits=(a_culprit(7, "embed_images_of_all_galleries"),))

    assert " --suite smoke`" in tables.markdown(build_page(long))


@pytest.fixture
def line(tmp_path, monkeypatch):
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    made = repositories.init(tmp_path / "project")
    for number in range(3):
        made.commit(code_py=f"{number}")
    made.ask("remote", "add", "origin", "https://github.com/org/project.git")
    return read_line(made.root)


def test_a_branch_says_whose_it_is_and_who_wrote_a_commit(line):
    assert line.repository.name == "org/project"
    assert line.repository.root == line.commits[0]
    assert line.parent(line.head) == line.commits[1]
    told = line.described[line.head]
    assert (told.author, told.title) == ("a", "more")
    assert line.find_first_with("2", line.top / "code.py") == line.head
    assert line.find_first_with("nowhere", line.top / "code.py") is None


def test_a_strange_name_of_an_author_shifts_no_field(line):
    made = repositories.Repository(line.top)
    made.ask("commit", "--allow-empty", "--author=Ada\rEve <ada@example.org>", "-m", "Nothing")

    again = read_line(line.top)

    told = again.described[again.head]
    assert (told.title, told.date[4], told.date[10]) == ("Nothing", "-", "T")


@pytest.mark.parametrize(
    ("other", "suite", "says"),
    [
        ({}, "smoke", "this repository, whose first commit is"),
        ({"suite": "gpu"}, "smoke", "the suite smoke, found gpu"),
    ],
    ids=["repository", "suite"],
)
def test_a_file_of_something_else_is_refused(line, tmp_path, other, suite, says):
    file = tmp_path / "watch.json"
    own = {"repository": line.repository} if other else {}
    files.write(file, a_watch(**own, **other))

    with pytest.raises(InvalidFileError, match=says):
        watch.read_before(file, line, suite)
    assert watch.read_before(tmp_path / "none.json", line, suite) is None


def test_a_night_knows_what_the_one_before_has_not_answered(line):
    begun = watch.begin(a_watch(), line, "smoke", a_watch().machine, f"{DAY}T02:00:00Z")

    assert [each.workload for each in begun.no_answer] == ["c"]


def edit_file(file, change):
    document = json.loads(codec.encode(a_watch()))
    change(document)
    file.write_text(json.dumps(document))


def test_a_file_of_an_older_version_keeps_what_issues_are_about(line, tmp_path):
    file = tmp_path / "watch.json"

    def grow_old(document):
        document["repository"]["root"] = line.repository.root
        document["old"] = document["culprits"][0]["command"] = "ci-perf bisect"
        document["suspicions"][0]["answer"] = "maybe"

    edit_file(file, grow_old)

    before = watch.read_before(file, line, "smoke")
    assert before is not None
    assert (before.culprits, before.creeps) == ((a_culprit(),), (a_creep(),))
    assert before.suspicions == ()
    begun = watch.begin(before, line, "smoke", before.machine, f"{DAY}T02:00:00Z")
    assert ["begins anew" in note and "unknown key" in note for note in begun.notes] == [True]
    files.write(file, begun)
    again = watch.read_before(file, line, "smoke")
    assert again is not None
    assert again.notes == ()


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document["culprits"][0].pop("commit"),
        lambda document: document.update(schema_version=99),
        lambda document: document.update(type="run"),
    ],
    ids=["a commit that cannot be read", "newer", "another document"],
)
def test_a_file_whose_issues_cannot_be_read_is_refused_and_stays(line, tmp_path, change):
    file = tmp_path / "watch.json"
    edit_file(file, change)
    text = file.read_text()

    with pytest.raises(InvalidFileError, match=r"watch\.json: "):
        watch.read_before(file, line, "smoke")
    assert file.read_text() == text


def test_a_file_of_another_machine_is_refused(tmp_path):
    own, other = (CpuMachine(cpu_model=name, logical_cores=2) for name in ("own", "other"))
    known, file = a_watch(machine=other), tmp_path / "watch.json"

    with pytest.raises(InvalidFileError, match=r"found one of cpu-other.*delete it"):
        watch.check_machine(file, known, own)
    watch.check_machine(file, known, other)
    watch.check_machine(file, None, own)


def test_a_shallow_clone_is_refused(line, tmp_path):
    clone = repositories.Repository(line.top).clone(tmp_path / "clone", "--depth=1")

    with pytest.raises(UsageError, match="fetch --unshallow"):
        read_line(clone.root)


def test_a_lost_commit_is_not_on_the_line(line):
    assert a_sha(1) not in line.places
