"""Which launches leave a trace, and what all of them may take."""

import msgspec

from ci_perf.model.step_profile import StepProfile
from ci_perf.session import profiling
from ci_perf.session.profiling import KeptFiles


def kept(folder, workload, side, size, run):
    """Let a launch leave a trace of so many bytes; return what the profile says of it."""
    place = run.place(workload, side)
    target = folder / f"{workload}.{side}.pt.trace.json.gz"
    assert place == str(target)
    assert not target.exists()
    target.write_bytes(b"1" * size)
    profile = run.within_bytes(StepProfile(steps=2, trace_file=target.name), place)
    assert target.exists() == bool(profile.trace_file)
    return profile.trace_file or profile.missing["trace_file"]


def test_traces_of_a_run_stay_within_its_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(profiling, "_MOST_KEPT_BYTES", 10)
    run = KeptFiles(tmp_path)

    assert [kept(tmp_path, "w", side, 4, run) for side in ("base", "head")] == [
        "w.base.pt.trace.json.gz",
        "w.head.pt.trace.json.gz",
    ]
    assert "all traces of the run would be larger" in kept(tmp_path, "v", "base", 4, run)
    assert kept(tmp_path, "v", "head", 2, run) == "v.head.pt.trace.json.gz"


def test_an_older_trace_and_a_link_are_removed_before_the_launch(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    link = tmp_path / "w.base.pt.trace.json.gz"
    link.symlink_to(victim)

    KeptFiles(tmp_path).place("w", "base")

    assert not link.is_symlink()
    assert victim.read_text() == "mine"


def test_what_cannot_be_removed_is_said(tmp_path):
    (tmp_path / "w.base.pt.trace.json.gz").mkdir()
    run = KeptFiles(tmp_path)

    place = run.place("w", "base")
    profile = run.within_bytes(StepProfile(steps=2), place)

    assert place == ""
    assert "cannot be removed" in profile.missing["trace_file"]


def test_a_trace_that_is_gone_is_said(tmp_path):
    run = KeptFiles(tmp_path)
    place = run.place("w", "base")

    profile = run.within_bytes(StepProfile(steps=2, trace_file="w.base.pt.trace.json.gz"), place)

    assert "No such file" in profile.missing["trace_file"]


def test_nothing_is_kept_without_a_folder():
    run, profile = KeptFiles(None), StepProfile(steps=2)

    assert run.place("w", "base") == ""
    assert run.within_bytes(profile, "") is profile
    assert msgspec.json.encode(profile)
