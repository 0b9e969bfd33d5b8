"""The records of programs that lie beside the baselines."""

import subprocess

import msgspec
import pytest

from ci_perf.baselines import accept, layout
from ci_perf.errors import InvalidFileError
from ci_perf.gate.accept import write_patch
from tests.accepting import accepted, against
from tests.programs import a_program
from tests.runs import CPU, SLOW, STEADY, a_measured, a_run


def a_recorded_run(*seconds, **more):
    run = a_run(a_measured("a", *seconds))
    program = a_program("a", run=run.id, **more)
    return msgspec.structs.replace(run, programs=(program,))


def read(root):
    return layout.read_program(root, CPU, "smoke", "a")


def test_an_accepted_run_leaves_its_record_beside_the_baseline(root):
    run = a_recorded_run(*STEADY)

    accepted(root, run)

    assert read(root) == run.programs[0]
    assert layout.program_of_newest_session(root, CPU, "smoke", "a") == run.programs[0]
    assert [file.stem for file in layout.folder(root, CPU, "smoke").glob("*.json")] == ["a"]


def test_a_record_of_another_session_than_the_newest_is_not_of_the_numbers(root):
    accepted(root, a_recorded_run(*STEADY))
    later = msgspec.structs.replace(
        a_run(a_measured("a", *SLOW)), id="later", started_at="2026-11-22T09:00:00Z"
    )

    accepted(root, later, reason="exact attention", force=True)

    assert read(root) is not None
    assert layout.program_of_newest_session(root, CPU, "smoke", "a") is None


def test_a_baseline_without_a_record_has_none_of_its_numbers_nor_has_a_record_alone(root):
    accepted(root, a_run(a_measured("a", *STEADY)))
    layout.write_program(layout.program_file(layout.path(root, CPU, "smoke", "b")), a_program("b"))

    for workload in ("a", "b"):
        assert layout.program_of_newest_session(root, CPU, "smoke", workload) is None


def test_a_run_that_changes_no_baseline_changes_no_record(root):
    accepted(root, a_recorded_run(*STEADY))
    before = read(root)

    accepted(root, a_recorded_run(*STEADY, inputs={"*": "1" * 16}))

    assert read(root) == before


def test_a_record_is_read_as_if_a_stranger_had_written_it(root):
    file = layout.program_file(layout.path(root, CPU, "smoke", "a"))
    layout.write_program(file, a_program("b"))
    with pytest.raises(InvalidFileError, match="expected 'a', the name of the file"):
        read(root)

    file.write_text('{"workload": "a", "unknown": 1}')
    with pytest.raises(InvalidFileError, match="unknown"):
        read(root)


def test_a_patch_carries_the_record_and_git_applies_it(tmp_path, root):
    run = a_recorded_run(*STEADY)
    files = accept.prepare(root, run, against(root, run))
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)

    write_patch(tmp_path / "a.patch", files, root=tmp_path)
    subprocess.run(["git", "apply", "a.patch"], cwd=tmp_path, check=True)

    assert read(root) == run.programs[0]
