"""The record of several launches or ranks: what any of them has used."""

from ci_perf.model.program import join_programs
from tests.programs import a_program


def test_what_any_launch_uses_is_used():
    first = a_program(folders={"data": ""}, searches={"": ("a",)}, obstacles=("it opens a socket",))
    second = a_program(
        files={"src/net.py": "a" * 40, "data/more.json": "c" * 40, "data/labels.json": ""},
        folders={"data": "1" * 16},
        searches={"": ("b",)},
        obstacles=("it opens a socket", "it starts a shell"),
    )

    program = join_programs([first, second])

    assert program.files == {**first.files, "data/more.json": "c" * 40}
    assert program.code == ("src/net.py",)
    assert program.folders == {"data": "1" * 16}
    assert program.searches == {"": ("a", "b")}
    assert program.obstacles == ("it opens a socket", "it starts a shell")


def test_a_file_that_one_launch_read_in_another_way_than_by_import_is_no_code():
    whole = a_program(code=())

    for launches in ([whole, a_program()], [a_program(), whole]):
        assert join_programs(launches).code == ()


def test_a_file_that_changes_between_launches_proves_nothing():
    other = a_program(files={"src/net.py": "c" * 40})

    assert join_programs([a_program(), other]).obstacles == ("src/net.py was changed while it ran",)
