"""How numbers that a job measured become the baselines: lines to copy."""

import re
from dataclasses import dataclass

from ci_perf.report import escape
from ci_perf.report.commands import quoted
from ci_perf.report.escape import Markdown

USUAL_ARTIFACT = "ci-perf"
_HOW = (
    "With ci-perf and a token in `GH_TOKEN` that may read Actions; `--reason` is asked for where a "
    "number gets worse, `--workload` accepts only some:"
)
_SHA = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Where the numbers are, and whose branch shall have them. ``pull`` and ``run`` are GitHub's.

    ``sha`` is empty where it is not known, or a comment could not have it accepted (a fork).
    """

    pull: int
    run: int
    artifact: str
    baselines: str
    sha: str = ""


def folded(way: Way) -> Markdown:
    """Say how to accept, folded: for the end of a report."""
    parts = [
        "<details><summary>Accept these numbers as the baselines</summary>",
        "",
        _HOW,
        "",
        escape.fence(lines(way), info="sh"),
        "",
        *_by_comment(way),
        "</details>",
        "",
    ]
    return Markdown("\n".join(parts))


def lines(way: Way) -> str:
    """Spell the commands, one per line."""
    named = [] if way.artifact == USUAL_ARTIFACT else ["--artifact", quoted(way.artifact)]
    usual = way.baselines == "baselines"
    folder = quoted(way.baselines)
    where = [] if usual else ["--baselines", folder]
    return "\n".join(
        [
            f"gh pr checkout {way.pull}",
            " ".join(
                ["ci-perf", "accept", "--run", str(way.run), *named, *where, "--reason", '"…"']
            ),
            f"git add {folder} && git commit -m 'Accept new baselines' && git push",
        ]
    )


def _by_comment(way: Way) -> list[str]:
    if not _SHA.fullmatch(way.sha):
        return []
    return [
        "Where this repository has the workflow that accepts, a comment does the same:",
        "",
        escape.fence(f'/ci-perf accept {way.sha} "…"', info="text"),
        "",
    ]
