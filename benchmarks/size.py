"""Count the code lines of the project, and hold them within a budget.

    python -m benchmarks.size

Prints the lines of each folder. A code line holds code: docstrings, comments, blank lines and
imports do not count. The exit code is 1 where a part is larger than its budget.
"""

import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]

# Today's size of each part. A budget only falls.
BUDGET: Final[Mapping[str, int]] = {"ci_perf": 38_504, "tests": 48_109, "benchmarks": 4_419}

_NO_CODE: Final = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def count_lines(source: str) -> int:
    """Return how many lines of a Python source hold code. Raises SyntaxError."""
    skipped: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())) | ast.Import() | ast.ImportFrom():
                skipped.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
            case _:
                pass
    with_code = {
        line
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in _NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(with_code - skipped)


def count_folders(root: Path) -> Counter[str]:
    """Return the code lines of each folder below a part, two levels deep."""
    lines: Counter[str] = Counter()
    for path in root.rglob("*.py"):
        folder = "/".join(path.relative_to(root).parts[:-1][:2])
        lines[f"{root.name}/{folder}"] += count_lines(path.read_text(encoding="utf-8"))
    return lines


def main() -> int:
    """Print the table."""
    within = True
    for part, budget in BUDGET.items():
        folders = count_folders(ROOT / part)
        for folder, lines in sorted(folders.items()):
            print(f"{lines:8,}  {folder}")
        within = within and folders.total() <= budget
        print(f"{folders.total():8,}  {part}, budget {budget:,}\n")
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
