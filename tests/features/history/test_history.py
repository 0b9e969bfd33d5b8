import math

import pytest

import ci_perf
from ci_perf.errors import CiPerfError, UsageError
from ci_perf.features.history import history
from ci_perf.features.history.branch_history import BranchHistory
from ci_perf.model import codec
from ci_perf.model.commit import MOST_DAYS
from ci_perf.system import files
from tests import branches
from tests.branches import MACHINE, a_recorded
from tests.runs import GPU


@pytest.fixture
def branch(tmp_path):
    return branches.init(tmp_path / "project")


def read(branch, said=None, **more):
    notify = (said if said is not None else []).append
    names = more.pop("names", ())
    return history.history(*names, root=branch.root, notify=notify, **more).document


def days(number, *, moved_at=math.inf, epochs=None):
    """Sessions of several days; 10 % slower from one of them on, known by an epoch or not."""
    return [
        a_recorded(
            f"r{day}",
            *(
                0.01 * (1.1 if day >= moved_at else 1) * (1 + 0.002 * ((day + k) % 3))
                for k in range(3)
            ),
            day=day,
            reason="meant" if day == moved_at else "",
            epochs=epochs if epochs and day >= moved_at else {},
        )
        for day in range(1, number + 1)
    ]


def accept_each(branch, sessions, **more):
    return [
        branch.accept(*sessions[: day + 1], day=day + 1, **more) for day in range(len(sessions))
    ]


def test_every_session_has_the_author_and_the_reason_of_its_commit(branch):
    sessions = days(3, moved_at=3, epochs={"step_time_s": 1})
    commits = accept_each(branch, sessions[:2])
    commits.append(branch.accept(*sessions, day=3, author="author", title="Meant"))

    document = read(branch)
    (workload,) = document.workloads
    (line,) = [each for each in workload.metrics if each.metric == "step_time_s"]

    assert [document.commits[each.commit].id for each in workload.sessions] == commits
    assert (document.ref, document.commits[-1].author) == ("main", "author")
    assert workload.sessions[-1].reason == "meant"
    assert [(change.session, change.accepted) for change in line.changes] == [(2, True)]
    assert line.changes[0].after / line.changes[0].before == pytest.approx(1.1, rel=0.01)
    assert codec.decode(codec.encode(document), BranchHistory, name="it") == document


def test_a_level_that_nobody_accepted_is_a_change_point(branch):
    accept_each(branch, days(12, moved_at=7))

    (workload,) = read(branch).workloads
    (line,) = [each for each in workload.metrics if each.metric == "step_time_s"]

    assert [(change.session, change.accepted) for change in line.changes] == [(6, False)]
    assert line.centre == line.changes[-1].after > 1.09 * line.changes[-1].before


def test_drift_is_what_a_check_would_say(branch):
    sessions = [a_recorded(f"r{day}", 0.01 * 1.02**day, day=day) for day in range(1, 21)]
    branch.accept(*sessions)

    (workload,) = read(branch).workloads

    assert [line.metric for line in workload.metrics if line.has_drifted] == ["step_time_s"]


def test_links_submodules_other_files_and_records_of_programs_are_no_baselines(branch):
    sessions = days(2)
    branch.accept(*sessions)
    (branch.root / "baselines/elsewhere").symlink_to(MACHINE)
    (branch.root / f"baselines/{MACHINE}/smoke/link.json").symlink_to("w.json")
    branch.put({f"{MACHINE}/calibration.json": "{}", f"{MACHINE}/smoke/programs/w.json": "{}"})

    document = read(branch)

    assert [each.workload for each in document.workloads] == ["w"]
    assert sorted(each.reason for each in document.skipped) == [
        f"{MACHINE}/smoke/link.json: expected a file, found a link",
        "elsewhere: expected a file, found a link",
    ]


def test_a_damaged_version_is_named_with_its_commit(branch):
    sessions = days(3)
    branch.accept(*sessions[:1])
    damaged = branch.put({f"{MACHINE}/smoke/w.json": "<<<<<<< ours"})
    branch.accept(*sessions)

    document = read(branch)

    assert len(document.workloads[0].sessions) == 3
    (skipped,) = document.skipped
    assert (skipped.path, skipped.commit) == (f"{MACHINE}/smoke/w.json", damaged)


def test_settings_of_a_user_change_nothing(branch, monkeypatch):
    accept_each(branch, days(2))
    whole = read(branch)
    settings = {
        "i18n.logOutputEncoding": "UTF-16",
        "diff.orderFile": "/nowhere",
        "log.showRoot": "false",
        "log.showSignature": "true",
    }
    monkeypatch.setenv("GIT_CONFIG_COUNT", str(len(settings)))
    for number, (name, value) in enumerate(settings.items()):
        monkeypatch.setenv(f"GIT_CONFIG_KEY_{number}", name)
        monkeypatch.setenv(f"GIT_CONFIG_VALUE_{number}", value)

    assert read(branch).workloads == whole.workloads
    assert [commit.date for commit in read(branch).commits] == [
        commit.date for commit in whole.commits
    ]


def test_a_removed_file_ends_and_a_renamed_one_is_another(branch):
    sessions = days(2)
    branch.accept(*sessions)
    renamed = branches.text(*sessions, workload="v")
    commit = branch.put({f"{MACHINE}/smoke/w.json": None, f"{MACHINE}/smoke/v.json": renamed})

    document = read(branch)
    v, w = document.workloads

    assert (v.workload, v.removed) == ("v", None)
    assert document.commits[w.removed].id == commit
    assert len(w.sessions) == 2


def test_of_a_merge_the_branch_got_what_its_first_parent_lacked(branch):
    sessions = days(3)
    branch.accept(*sessions[:1])
    branch.ask("checkout", "--quiet", "-b", "topic")
    branch.accept(*sessions[:2], title="on the topic")
    branch.accept(*sessions, title="on the topic again")
    branch.ask("checkout", "--quiet", "main")
    branch.commit(other_py="meanwhile")
    branch.ask("merge", "--quiet", "--no-ff", "--message=merge it", "topic")

    document = read(branch)

    assert [commit.title for commit in document.commits] == ["Accept", "merge it"]
    assert [session.run for session in document.workloads[0].sessions] == ["r1", "r2", "r3"]


def test_a_shallow_clone_says_so_and_a_ref_is_read_without_a_checkout(branch, tmp_path):
    accept_each(branch, days(4))
    branch.ask("checkout", "--quiet", "-b", "other")
    branch.ask("rm", "--quiet", "-r", "baselines")
    branch.commit(other_py="no baselines here")
    clone = branches.Branch(branch.clone(tmp_path / "clone", "--depth=2", "--branch=main").root)

    assert len(read(branch, ref="main").workloads[0].sessions) == 4
    shallow = read(clone)
    assert shallow.is_shallow
    assert len(shallow.workloads[0].sessions) == 4
    assert shallow.repository_url == ""


def test_names_and_machines_choose_and_a_wrong_one_is_refused(branch):
    branch.accept(*days(2))
    branch.accept(*days(2), workload="matmul.size=1")
    branch.accept(*days(2), machine=GPU)

    assert {each.workload for each in read(branch, names=("matmul",)).workloads} == {
        "matmul.size=1"
    }
    chosen = read(branch, machines=("nvidia-h200",)).workloads
    assert {each.machine for each in chosen} == {"nvidia-h200"}
    with pytest.raises(UsageError, match="no baseline of a workload 'matmull'; did you mean"):
        read(branch, names=("matmull",))
    with pytest.raises(UsageError, match="no baselines of 'h200'"):
        read(branch, machines=("h200",))


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://user:secret@github.com/o/r.git", "https://github.com/o/r"),
        ("https://example.org:8443/a/b/", "https://example.org:8443/a/b"),
        ("git@github.com:o/r.git", ""),
        ("http://github.com/o/r", ""),
        ("javascript:alert(1)", ""),
        ("https://github.com/o/r?x=<b>", ""),
    ],
)
def test_the_address_of_the_repository_has_no_password(branch, address, shown):
    branch.accept(*days(1))
    branch.ask("remote", "add", "origin", address)

    assert read(branch).repository_url == shown


def test_no_repository_no_branch_no_commit_and_no_baselines_are_said(branch, tmp_path):
    with pytest.raises(UsageError, match="--ref HEAD: expected a branch, tag or commit"):
        read(branch)
    branch.commit(code_py="no baselines")
    with pytest.raises(CiPerfError, match=r"expected commits that change baselines"):
        read(branch)
    with pytest.raises(UsageError, match="--ref --all"):
        read(branch, ref="--all")
    with pytest.raises(UsageError, match="expected a git repository"):
        read(branches.Branch(tmp_path))
    with pytest.raises(UsageError, match="found one outside"):
        read(branch, baselines=tmp_path / "b")


def test_a_folder_holds_the_page_the_data_and_a_badge(branch, tmp_path):
    branch.accept(*days(3))
    document = read(branch)

    page = history.write(document, tmp_path / "a/site")

    names = {"badge.svg", "history.json", "index.html"}
    assert {path.name for path in page.parent.iterdir()} == names
    assert files.read(page.parent / "history.json", BranchHistory) == document


def test_python_has_the_history_as_a_table(branch):
    accept_each(branch, days(12, moved_at=7))

    loaded = ci_perf.history("w", root=branch.root)
    table = loaded.to_frame()

    assert len(table) == 12
    assert list(table["level_change"]).count("not accepted") == 1
    assert table["launches"].tolist() == [3] * 12


@pytest.mark.parametrize(
    "date", ["1990-11-01T12:00:00Z", "2099-11-01T12:00:00Z", "@253370764800 +0000"]
)
def test_a_commit_with_a_date_far_from_now_is_not_recent(branch, date):
    branch.put({f"{MACHINE}/smoke/w.json": branches.text(a_recorded("r1"))}, date=date)

    document = read(branch)

    assert 365 < document.commits[0].age_days <= MOST_DAYS
    assert codec.decode(codec.encode(document), BranchHistory, name="it") == document
