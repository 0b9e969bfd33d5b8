"""The record of several launches or ranks: what any of them has used."""

import pytest

from ci_perf.model.program import join_programs
from tests.programs import a_program

A, B, ONE, TWO = "a" * 40, "b" * 40, "1" * 16, "2" * 16


def test_what_any_launch_uses_is_used():
    first = a_program(searches={"": ("a",)}, obstacles=("it opens a socket",))
    second = a_program(
        paths={"data/more.json": f"file {A}"},
        searches={"": ("b",)},
        obstacles=("it opens a socket", "it starts a shell"),
    )

    program = join_programs([first, second])

    assert program.paths == first.paths | second.paths
    assert program.searches == {"": ("a", "b")}
    assert program.obstacles == ("it opens a socket", "it starts a shell")


@pytest.mark.parametrize(
    ("more", "less"),
    [
        (f"file {A}", f"code {A}"),
        (f"file {A}", "file"),
        (f"code {A}", "file"),
        (f"folder {ONE}", "folder"),
        (f"link {A}", "file"),
    ],
)
def test_the_launch_of_which_more_of_a_path_counts_is_believed(more, less):
    launches = [a_program(paths={"a": state}) for state in (more, less)]

    for order in (launches, launches[::-1]):
        joined = join_programs(order)
        assert (joined.paths, joined.obstacles) == ({"a": more}, ())


def test_a_file_that_changes_between_launches_proves_nothing():
    def find_obstacles(first, second):
        return join_programs([a_program(paths={"a": each}) for each in (first, second)]).obstacles

    assert find_obstacles(f"code {A}", f"file {B}") == ("a was changed while it ran",)
    # What a launch leaves in a folder is told by itself.
    assert find_obstacles(f"folder {ONE}", f"folder {TWO}") == ()
