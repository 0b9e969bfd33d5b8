import os

from ci_perf.measuring.recording import notes
from ci_perf.measuring.recording.notes import NoteKind, Notes


def test_a_forked_child_with_too_many_notes_says_so(tmp_path, monkeypatch):
    """The parent cannot count them: what is left out would be a file that nobody compares."""
    monkeypatch.setattr(notes, "_MOST_NOTES", 5)
    noted = Notes(tmp_path / "notes")
    noted.add(NoteKind.READ, "/before")
    if not (pid := os.fork()):
        for number in range(20):
            noted.add(NoteKind.READ, f"/{number}")
        os._exit(0)
    os.waitpid(pid, 0)

    by_kind = noted.read()

    assert len(by_kind[NoteKind.READ]) == 5
    assert list(by_kind[NoteKind.OBSTACLE]) == ["it uses more than 5 files and names"]
