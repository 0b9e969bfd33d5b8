"""The reports of examples/repository: `make example`, about a minute.

Copies the project into a scratch repository. For each of its branches, it applies the patch and
types `ci-perf check --against main`. It keeps the report as Markdown and as a page, and a picture
of the page. Ends with exit code 1 if a check has another exit code than expected.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from examples import demo

EXAMPLE = Path(__file__).resolve().parent / "repository"
# The branches, and how their checks end.
BRANCHES = {"red": 1, "green": 0, "no-answer": 3}
CHECK = ("--against", "main", "--wait", "0s", "--budget", "40s", "--explain", "0s")
BROWSER = ("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")


def main(folder: Path) -> None:
    """Write the reports of all branches into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch, "repository")
        ours = shutil.ignore_patterns("branches", "reports", "README.md", "__pycache__")
        shutil.copytree(EXAMPLE, root, ignore=ours)
        paths = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        around = demo.environment(scratch) | {"PATH": paths}

        def run(*command: str, code: int = 0) -> str:
            program = (*demo.PROGRAMS[command[0]], *command[1:])
            done = subprocess.run(
                program, cwd=root, env=around, stdout=subprocess.PIPE, text=True, check=False
            )
            if done.returncode != code:
                said = f"expected exit code {code}, found {done.returncode}"
                raise SystemExit(f"{' '.join(command)}: {said}; is the machine busy?")
            return done.stdout

        run("git", "init", "--quiet", "--initial-branch=main")
        run("git", "add", ".")
        run("git", "commit", "--quiet", "-m", "Begin")
        for name, code in BRANCHES.items():
            run("git", "switch", "--quiet", "--create", name, "main")
            run("git", "am", "--quiet", str(EXAMPLE / f"branches/{name}.patch"))
            report = run("ci-perf", "check", *CHECK, "--comparison", "comparison.json", code=code)
            page = run("ci-perf", "export", "comparison.json", "--format", "html")
            (folder / f"{name}.md").write_text(report, encoding="utf-8")
            (folder / f"{name}.html").write_text(page, encoding="utf-8")
            draw(folder.resolve() / f"{name}.html")


def draw(page: Path) -> None:
    """Take a picture of a page, where there is a browser."""
    if shutil.which(BROWSER[0]) is None:
        print(f"{page}: no picture, since there is no {BROWSER[0]}", file=sys.stderr)  # noqa: T201
        return
    picture = page.with_suffix(".png")
    size = f"--window-size=960,{900 if page.stem == 'red' else 420}"
    subprocess.run(
        [*BROWSER, size, f"--screenshot={picture}", page.as_uri()], check=True, capture_output=True
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
