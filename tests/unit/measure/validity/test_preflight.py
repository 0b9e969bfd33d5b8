import pytest

from ci_perf.measure.validity import preflight
from ci_perf.model import validity
from ci_perf.model.validity import Status
from tests.runs import an_image


@pytest.fixture
def proc(tmp_path):
    """A /proc of our own: a quiet host."""
    (tmp_path / "pressure").mkdir()
    pressed(tmp_path, cpu=1.5, memory=0.1)
    return tmp_path


def pressed(proc, **percents):
    for resource, percent in percents.items():
        text = f"some avg10={percent} avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00\n"
        (proc / "pressure" / resource).write_text(text)


@pytest.fixture
def check(proc, tmp_path):
    """Look at the host; the folders are those of this machine."""
    return lambda **where: preflight.check(proc=proc, scratch=tmp_path, **where)


def test_a_quiet_host_is_valid(check):
    assert validity.of(check()).status is Status.VALID


@pytest.mark.parametrize(
    ("percents", "code", "figure"),
    [({"cpu": 63.0}, "host_pressure", "63%"), ({"memory": 12.0}, "memory_pressure", "12%")],
)
def test_a_busy_host_is_degraded_with_the_figure(check, proc, percents, code, figure):
    pressed(proc, **percents)

    (reason,) = check()

    assert (reason.code, reason.status) == (code, Status.DEGRADED)
    assert figure in reason.detail


def test_a_host_that_says_nothing_is_not_distrusted(tmp_path):
    assert preflight.check(proc=tmp_path / "nothing", scratch=tmp_path) == ()


def test_the_worst_reason_decides(check, proc):
    pressed(proc, cpu=63.0)

    assert validity.of((*check(), preflight.INTERRUPTED)).status is Status.INVALID


def test_a_full_disk_makes_a_run_invalid(tmp_path):
    (reason,) = preflight.room(tmp_path, 200 * 2**20, 30 * 2**20)

    assert (reason.code, reason.status) == ("low_disk", Status.INVALID)
    assert reason.detail == f"{tmp_path}: expected 200 MiB free, found 30 MiB"


def test_room_enough_is_no_reason(tmp_path):
    assert preflight.room(tmp_path, 200 * 2**20, 200 * 2**20) == ()


def test_the_folder_for_temporary_files_and_shared_memory_are_both_looked_at(
    check, tmp_path, monkeypatch
):
    monkeypatch.setattr(preflight, "MIN_FREE_BYTES", 2**62)
    monkeypatch.setattr(preflight, "MIN_SHARED_BYTES", 2**61)
    shared = tmp_path / "shared"
    shared.mkdir()

    found = check(shared=shared)

    assert [reason.code for reason in found] == ["low_disk", "low_disk"]
    assert found[0].detail.startswith(f"{tmp_path}: expected {2**42} MiB")
    assert found[1].detail.startswith(f"{shared}: expected {2**41} MiB")


def test_a_machine_without_shared_memory_is_not_distrusted(check, tmp_path):
    assert check(shared=tmp_path / "nothing") == ()


def test_an_image_that_may_be_another_tomorrow_degrades_the_run():
    (reason,) = preflight.image(an_image(reference="perf:dev", is_pinned=False))

    assert (reason.code, reason.status) == ("unpinned_image", Status.DEGRADED)
    assert reason.detail.startswith("perf:dev: expected an image pinned by its digest")


def test_neither_a_pinned_image_nor_none_speaks_against_a_run():
    assert preflight.image(an_image()) == ()
    assert preflight.image(None) == ()
