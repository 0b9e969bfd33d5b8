"""Print the notes of a release, from CHANGELOG.md: python -m release.notes TAG ADDRESS.

Ends with exit code 1 if the tag is not the version, if CHANGELOG.md lacks the version, or if the
package would name another repository than ADDRESS.
"""

import re
import runpy
import sys
import tomllib
from pathlib import Path

_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s]+)\)")


def write_notes(root: Path, tag: str, address: str) -> str:
    """Return the entries of one version; their links lead to the files of the tag."""
    version = runpy.run_path(str(root / "ci_perf/version.py"))["__version__"]
    if tag != f"v{version}":
        raise SystemExit(f"ci_perf/version.py: expected the version of tag {tag}, found {version}")
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    if (named := project["urls"]["Repository"]) != address:
        raise SystemExit(
            f"pyproject.toml: expected Repository = {address}, found {named}; replace OWNER in all "
            "files: git grep -l OWNER/ci_perf"
        )
    sections = re.split("^## ", (root / "CHANGELOG.md").read_text("utf-8"), flags=re.MULTILINE)
    ours = [one.partition("\n")[2].strip() for one in sections if one.startswith(f"[{version}]")]
    if not any(ours):
        raise SystemExit(f'CHANGELOG.md: expected entries below "## [{version}]", found none')
    return _LINK.sub(rf"]({address}/blob/{tag}/\1)", ours[0]) + "\n"


if __name__ == "__main__":
    sys.stdout.write(write_notes(Path(__file__).parents[1], *sys.argv[1:]))
