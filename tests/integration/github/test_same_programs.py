"""What the job with the token believes of a fork's run that launched nothing."""

import msgspec
import pytest

from ci_perf.baselines import layout
from ci_perf.github.answers import Place, PullRequest, Repository
from ci_perf.model.program import Program, blob
from ci_perf.pull_request import trust
from tests.accepting import accepted
from tests.integration.github.stage import a_client
from tests.programs import a_same_program
from tests.runs import STEADY, a_measured, a_run, an_environment

NET = b"def used():\n    return 1\n\ndef unused():\n    return 2\n"
SUITE = b"[suites.smoke]\n"


@pytest.fixture
def believed(github, tmp_path, monkeypatch):
    """Return a function that says whether a fork's claim is proven; its arguments are files."""
    monkeypatch.chdir(tmp_path)
    workloads = tmp_path / "workloads"
    workloads.mkdir()
    (workloads / "suite.toml").write_bytes(SUITE)
    (tmp_path / "src").mkdir()
    (tmp_path / "src/net.py").write_bytes(NET)
    said = []

    def believe(changes=(), *, is_fork=True, with_record=True, sessions=1, packages="1" * 16):
        baselines = tmp_path / "baselines"
        for number in range(sessions):
            run = a_recorded_run(number, has_record=with_record and not number)
            accepted(baselines, run, reason="more breaks")
        (tmp_path / "requirements.txt").write_bytes(b"torch")
        head = {
            "src/net.py": NET,
            "workloads/suite.toml": SUITE,
            "requirements.txt": b"torch",
            **dict(changes),
        }
        pull = PullRequest(
            number=1,
            head=Place(sha=github.state.write_commit(head), repo=Repository(id=1 + is_fork)),
            base=Place(sha="b" * 40, ref="main", repo=Repository(id=1)),
        )
        run = trust.with_proven_programs(
            a_client(github),
            pull,
            a_run(same=(a_same_program("a"),), environment=an_environment(packages=packages)),
            baselines=baselines.relative_to(tmp_path),
            workloads=workloads.relative_to(tmp_path),
            notify=said.append,
        )
        return run.same[0].is_proven, said

    return believe


def a_recorded_run(number, *, has_record):
    run = a_run(
        a_measured("a", *STEADY, breaks=number),
        id=f"r{number}",
        environment=an_environment(packages="1" * 16),
    )
    program = Program(workload="a", run=run.id, paths={"src/net.py": f"code {blob(NET)}"})
    return msgspec.structs.replace(run, programs=(program,) if has_record else ())


def test_the_committed_record_and_the_files_on_github_prove_it(believed):
    assert believed() == (True, [])
    commented = {"src/net.py": NET + b"# a comment\n"}
    assert believed(commented) == (True, [])
    assert believed(packages="2" * 16) == (True, [])  # the head has not asked for them
    assert believed({"requirements.txt": b"torch<3"}) == (True, [])  # nor got what it has asked for


@pytest.mark.parametrize(
    ("changes", "more", "words"),
    [
        ({"src/net.py": NET.replace(b"return 1", b"return 3")}, {}, "src/net.py differs"),
        ({"src/net.py": b"def ("}, {}, "src/net.py differs"),
        ({"workloads/suite.toml": b"[suites.smoke] # other\n"}, {}, "suite.toml"),
        ({}, {"with_record": False}, "the base has no record of its program"),
        (
            {"requirements.txt": b"torch<3"},
            {"packages": "2" * 16},
            "requirements.txt differs, and the run had other packages",
        ),
        ({}, {"sessions": 2}, "the base has no record of its program"),
    ],
)
def test_everything_else_is_a_claim(believed, changes, more, words):
    is_proven, said = believed(changes, **more)

    assert not is_proven
    assert words in " ".join(said)


def test_whoever_may_push_is_believed_as_for_the_numbers(believed):
    changed = {"src/net.py": NET.replace(b"return 1", b"return 3")}

    assert believed(changed, is_fork=False) == (True, [])


def test_records_lie_where_the_base_branch_has_them(believed, tmp_path):
    believed()

    assert len(list((tmp_path / "baselines").glob("*/smoke/programs/a.json"))) == 1
    assert layout.program_file(tmp_path / "x.json") == tmp_path / "programs/x.json"
