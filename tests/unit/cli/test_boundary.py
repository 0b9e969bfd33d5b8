"""Only the command line writes to stdout and stderr: everything else is a library."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[3] / "ci_perf"

# measuring/ holds the programs of child processes: what they write is read by their parent.
# __main__ says what is missing where the command line cannot be imported. What a node of Ray writes
# is read by the task that started it; what Ray prints in the controller is kept off stdout.
ALLOWED = {"cli", "measuring", "__main__.py"}
# A feature has a command, and Ray prints what it thinks of its nodes.
ALLOWED_IN_FEATURES = {"command.py", "ray.py"}
WRITERS = {("sys", "stdout"), ("sys", "stderr"), ("click", "echo"), ("click", "secho")}


def writes(node):
    """Whether a piece of code prints, or takes hold of a standard stream."""
    match node:
        case ast.Call(func=ast.Name(id="print")):
            return True
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return (module, name) in WRITERS
        case _:
            return False


def test_only_the_command_line_and_programs_of_child_processes_write_to_standard_streams():
    writers = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if any(map(writes, ast.walk(ast.parse(path.read_text(encoding="utf-8")))))
    }

    assert "cli/console.py" in writers
    of_core = {file for file in writers if not file.startswith("features/")}
    assert {file for file in of_core if not {file, file.partition("/")[0]} & ALLOWED} == set()
    assert {file.rpartition("/")[2] for file in writers - of_core} <= ALLOWED_IN_FEATURES
