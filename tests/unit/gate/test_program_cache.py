import os

from ci_perf.gate.programs import ProgramCache
from tests.programs import a_program


def kept(cache):
    return [program.steps for program in cache.newest_first("bert")]


def test_the_newest_record_comes_first_and_an_equal_one_is_kept_once(tmp_path):
    cache = ProgramCache(tmp_path, notify=print)
    for age, steps in enumerate((3, 2, 1)):
        cache.keep(a_program(steps=steps))
        for file in (tmp_path / "bert").iterdir():
            status = file.stat()
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns - 10**9 * (age + 1)))

    cache.keep(a_program(steps=1))

    assert kept(cache)[0] == 1
    assert sorted(kept(cache)) == [1, 2, 3]
    assert list(cache.newest_first("gpt")) == []


def test_only_the_newest_records_are_kept(tmp_path):
    cache = ProgramCache(tmp_path, notify=print)
    for steps in range(1, 26):
        cache.keep(a_program(steps=steps))

    assert len(kept(cache)) == 20
    assert 25 in kept(cache)


def test_a_damaged_record_is_named_and_hides_no_other(tmp_path):
    said = []
    cache = ProgramCache(tmp_path, notify=said.append)
    cache.keep(a_program())
    (tmp_path / "bert/damaged.json").write_text("{")

    assert len(kept(cache)) == 1
    assert "a kept record of bert is not used" in said[0]
    assert "damaged.json" in said[0]


def test_a_folder_that_cannot_be_written_loses_the_record_and_nothing_else(tmp_path):
    said = []
    (tmp_path / "cache").write_text("a file")

    ProgramCache(tmp_path / "cache", notify=said.append).keep(a_program())

    assert "the record of bert is not kept" in said[0]
