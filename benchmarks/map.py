"""Print every module of ci_perf with the first line of its docstring."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "ci_perf"


def main() -> None:
    """Print the list, folder by folder."""
    for path in sorted(PACKAGE.rglob("*.py"), key=lambda path: (path.parent, path.name)):
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        print(f"{path.relative_to(PACKAGE)!s:45} {docstring.partition(chr(10))[0]}")


if __name__ == "__main__":
    main()
