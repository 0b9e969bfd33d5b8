"""The record of several ranks: what any of them has taken."""

from ci_perf.model.program import ModuleSearch, ProgramFile, joined
from tests.programs import a_program


def test_what_any_rank_takes_is_taken():
    first = a_program(
        steps=5,
        searches={"": ModuleSearch(names=("a",), entries=())},
        absent=("x",),
        obstacles=("a socket",),
    )
    second = a_program(
        steps=4,
        files={
            "src/net.py": ProgramFile(blob="a" * 40, units={"loss": "3" * 16}),
            "data/more.json": ProgramFile(blob="c" * 40),
        },
        searches={"": ModuleSearch(names=("b",), entries=("b.py",))},
        absent=("y",),
        obstacles=("a socket", "a program"),
    )

    program = joined([first, second])

    assert program.steps == 4
    assert sorted(program.files) == ["data/labels.json", "data/more.json", "src/net.py"]
    assert {*(program.files["src/net.py"].units or ())} == {":", "loss", "step"}
    assert program.searches == {"": ModuleSearch(names=("a", "b"), entries=("b.py",))}
    assert program.absent == ("x", "y")
    assert program.obstacles == ("a socket", "a program")


def test_a_file_that_one_rank_read_as_a_whole_counts_as_a_whole():
    whole = a_program(files={"src/net.py": ProgramFile(blob="a" * 40)})

    for ranks in ([whole, a_program()], [a_program(), whole]):
        assert joined(ranks).files["src/net.py"].units is None
