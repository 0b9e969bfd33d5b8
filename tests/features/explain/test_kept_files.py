"""Which launches leave a trace, and what all of them may take."""

from pathlib import Path

import msgspec

from ci_perf.features.explain import kept_files
from ci_perf.features.explain.kept_files import KeptTraces, describe_traces, list_sides
from ci_perf.features.explain.model import ProfiledPair, ProfiledPairs, StepProfile


def kept(folder, workload, side, size, run):
    """Let a launch leave a trace of so many bytes; return what the profile says of it."""
    place = run.find_place(workload, side)
    target = folder / f"{workload}.{side}.pt.trace.json.gz"
    assert place == str(target)
    assert not target.exists()
    target.write_bytes(b"1" * size)
    profile = run.limit(StepProfile(steps=2, trace_file=target.name), place)
    assert target.exists() == bool(profile.trace_file)
    return profile.trace_file or profile.missing["trace_file"]


def test_traces_of_a_run_stay_within_its_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_files, "_MOST_BYTES", 10)
    run = KeptTraces(tmp_path)

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

    KeptTraces(tmp_path).find_place("w", "base")

    assert not link.is_symlink()
    assert victim.read_text() == "mine"


def test_what_cannot_be_removed_is_said(tmp_path):
    (tmp_path / "w.base.pt.trace.json.gz").mkdir()
    run = KeptTraces(tmp_path)

    place = run.find_place("w", "base")
    profile = run.limit(StepProfile(steps=2), place)

    assert place == ""
    assert "cannot be removed" in profile.missing["trace_file"]


def test_a_trace_that_is_gone_is_said(tmp_path):
    run = KeptTraces(tmp_path)
    place = run.find_place("w", "base")

    profile = run.limit(StepProfile(steps=2, trace_file="w.base.pt.trace.json.gz"), place)

    assert "No such file" in profile.missing["trace_file"]


def test_nothing_is_kept_without_a_folder():
    run, profile = KeptTraces(None), StepProfile(steps=2)

    assert run.find_place("w", "base") == ""
    assert run.limit(profile, "") is profile
    assert msgspec.json.encode(profile)


KEPT = StepProfile(steps=2, trace_file="w.base.pt.trace.json.gz")
LOST = StepProfile(steps=2, missing={"trace_file": "it is too large"})


def said(base, head, folder=Path("traces")):
    pairs = ProfiledPairs(workload="w", pairs=(ProfiledPair(base=base, head=head),) * 2)
    return list(describe_traces(folder, list_sides([pairs, ProfiledPairs(workload="v")])))


def test_says_where_traces_are_and_why_some_are_not():
    assert said(KEPT, KEPT) == ["traces: traces (2 files); open them in ui.perfetto.dev"]
    assert said(KEPT, LOST) == [
        "note: w, head: no trace: it is too large",
        "traces: traces (1 file); open them in ui.perfetto.dev",
    ]
    assert said(StepProfile(steps=0, absent="it failed"), StepProfile(steps=2)) == [
        "note: w, base: no trace: it failed",
        "note: w, head: no trace: the launch left none",
        "traces: none in traces",
    ]


def test_says_nothing_where_nobody_asked():
    assert said(KEPT, LOST, folder=None) == []
