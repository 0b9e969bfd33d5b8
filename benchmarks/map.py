"""Print every module of ci_perf with its number of lines and the first line of its docstring."""

import ast
import os
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "ci_perf"


def rows() -> Iterator[str]:
    """Yield one line per module, folder by folder."""
    for path in sorted(PACKAGE.rglob("*.py"), key=lambda path: (path.parent, path.name)):
        source = path.read_text(encoding="utf-8")
        first = (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]
        yield f"{path.relative_to(PACKAGE)!s:45} {len(source.splitlines()):4}  {first}"


def main() -> int:
    """Print the list; a reader that closes the pipe early (`head`) is no error."""
    try:
        for row in rows():
            print(row)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes stdout again at its end: give it a place that takes everything.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
