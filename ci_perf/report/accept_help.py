"""How to accept measured numbers as baselines, and what accepting them changed."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ci_perf.baselines.accept import Acceptance, Action
from ci_perf.model import metrics
from ci_perf.model.summary import Numbers
from ci_perf.report import units
from ci_perf.report.commands import USUAL_ARTIFACT, quote_word
from ci_perf.report.sentences import say
from ci_perf.report.tables import Block, Fold, Listing

_SHA = re.compile(r"[0-9a-f]{40}")
_INDENT = " " * 10


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptHint:
    """Where the numbers are, and whose branch accepts them. ``pull`` and ``run`` are GitHub's.

    ``sha`` is empty where it is unknown, or where a comment cannot accept it (a fork).
    """

    pull: int
    run: int
    artifact: str
    baselines: str
    sha: str = ""


def fold(hint: AcceptHint) -> Fold:
    """Say how to accept, folded: for the end of a report."""
    page: list[Block] = [say("how_to_accept"), Listing(commands(hint), "sh")]
    if _SHA.fullmatch(hint.sha):
        page += [say("accept_by_comment"), Listing(f'/ci-perf accept {hint.sha} "…"')]
    return Fold(say("accept_title"), page)


def commands(hint: AcceptHint) -> str:
    """Return the commands, one per line."""
    folder = quote_word(hint.baselines)
    options = f"--run {hint.run}"
    if hint.artifact != USUAL_ARTIFACT:
        options += f" --artifact {quote_word(hint.artifact)}"
    if hint.baselines != "baselines":
        options += f" --baselines {folder}"
    return (
        f"gh pr checkout {hint.pull}\n"
        f'ci-perf accept {options} --reason "…"\n'
        f"git add {folder} && git commit -m 'Accept new baselines' && git push"
    )


def result(files: Mapping[str, Acceptance]) -> str:
    """Say what happened to each file, by its path."""
    lines: list[str] = []
    for path, file in files.items():
        lines.append(f"{file.action.value:<9} {path}")
        if file.action is Action.REMOVED:
            lines.append(f"{_INDENT}no workload of the suite has this name any more")
        elif file.action is not Action.KEPT:
            lines += [f"{_INDENT}{line}" for line in _news(file)]
    return "\n".join(lines) if lines else "nothing to accept"


def _news(file: Acceptance) -> Iterable[str]:
    if file.changed_numerics:
        yield "numerics: the losses or the output changed"
    if began := [known.title for n in file.began if (known := metrics.find_metric(n))]:
        yield f"a new epoch begins: {', '.join(began)}"
    yield from _moves(file.before, file.after)


def _moves(before: Numbers, after: Numbers) -> Iterable[str]:
    for name in sorted(before.keys() | after.keys()):
        metric = metrics.metric_of(name)
        old, new = (
            units.value(side[name], metric.unit) if name in side else "none"
            for side in (before, after)
        )
        if not before:
            if after[name]:  # nothing was compiled: no news
                yield f"{metric.title}: {new}"
        elif old != new:
            is_known = before.get(name) and name in after
            percent = f" ({units.percent(after[name] / before[name] - 1)})" if is_known else ""
            yield f"{metric.title}: {old} → {new}{percent}"
