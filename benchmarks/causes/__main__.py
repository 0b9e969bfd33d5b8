"""Whether an explanation names the planted cause: causes planted in small models, fresh launches.

    nice python -m benchmarks.causes [--causes NAME …] [--pairs N] [--same N] [--keep FOLDER]
    nice python -m benchmarks.causes --bases N [--same N] [--keep FOLDER]

Each cause is planted beside two harmless decoys. Both sides are launched in turns as `check` would
profile them, and explained by one pair and by three. The first table says whether the planted
function stands first, with the right kind. The second compares launches of the base with each
other: every line there is false. With --bases, no cause is planted: each model is launched so many
times by itself, and only the second table is printed.

Whether the row is slower or faster is told by steps that both sides ran in turns in one process.
With --keep, launches are kept in a folder and not made again. The exit code is 1 where three pairs
name fewer than 95 % of the causes first.
"""

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.causes import launching, planted, scoring
from benchmarks.causes.causes import CAUSES
from benchmarks.causes.launching import Repository
from benchmarks.causes.planted import Planted
from benchmarks.causes.scoring import Answer
from ci_perf.model.explanation import ProfiledPair, StepProfile

MODELS = Path(__file__).parent / "models"
FEW, MANY = 1, 3
# The share of causes that three pairs must name first.
CLAIM = 0.95
_NONE = "\N{EN DASH}"


@dataclass(frozen=True, slots=True)
class Score:
    """One planted cause, with the answers of one pair and of three."""

    name: str
    planted: Planted
    change: float
    by_one: Sequence[Answer]
    by_three: Sequence[Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Launched:
    """All that was launched for one cause."""

    pairs: list[ProfiledPair]
    rounds_s: list[list[float]]


def main(arguments: Sequence[str]) -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--causes", nargs="+", metavar="NAME", help="only names with this in them")
    parser.add_argument("--pairs", type=int, default=MANY, help="of each cause")
    parser.add_argument("--bases", type=int, metavar="N", help="launch each model N times instead")
    parser.add_argument("--same", type=int, default=200, help="comparisons of the base with itself")
    parser.add_argument("--keep", type=Path, help="a folder for launches, used again")
    options = parser.parse_args(arguments)
    models = {path.name.partition(".")[0]: path.read_text() for path in MODELS.iterdir()}
    scores: list[Score] = []
    launched: dict[str, list[StepProfile]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        if options.bases:
            launched = {
                model: _bases(folder / "bases" / model, text, options.bases)
                for model, text in models.items()
            }
            print(_same(launched, options.same))
            return 0
        for name, cause in choose(options.causes).items():
            keep = folder / name.replace(" ", "-")
            of_cause = _launched(models, cause, keep, options)
            scores.append(_scored(name, cause, of_cause))
            print(_line(scores[-1]), flush=True)
            launched.setdefault(cause.model, []).extend(pair.base for pair in of_cause.pairs)
    print(f"\n{_table(scores)}\n\n{_same(launched, options.same)}")
    first = [answer.is_first for score in scores for answer in score.by_three]
    return int(sum(first) < CLAIM * len(first))


def choose(parts: Sequence[str] | None) -> Mapping[str, Planted]:
    """Return the causes whose names have one of these parts in them; without parts, all."""
    return {
        name: cause
        for name, cause in CAUSES.items()
        if not parts or any(part in name for part in parts)
    }


def _bases(keep: Path, text: str, count: int) -> list[StepProfile]:
    """Launch a model without a cause as often as it is not kept yet."""
    kept = keep / "launches.json"
    launches = (
        msgspec.json.decode(kept.read_bytes(), type=list[StepProfile]) if kept.exists() else []
    )
    base = Repository.holding(keep, text)
    launches += [base.profile() for _ in range(count - len(launches))]
    kept.write_bytes(msgspec.json.encode(launches))
    return launches


def _launched(
    models: Mapping[str, str], cause: Planted, keep: Path, options: argparse.Namespace
) -> _Launched:
    """Launch what is not kept yet."""
    base, decoys, head = (
        Repository.holding(keep / side, text)
        for side, text in zip(
            ("base", "decoys", "head"), planted.sources(models, cause), strict=True
        )
    )
    pairs = launching.kept(keep / "pairs.json")
    pairs += launching.pairs(base, head, options.pairs - len(pairs))
    (keep / "pairs.json").write_bytes(msgspec.json.encode(pairs))
    return _Launched(
        pairs=pairs,
        rounds_s=_kept(keep / "rounds.json", lambda: launching.rounds_s(base, decoys, head)),
    )


def _kept(path: Path, make: Callable[[], Any]) -> Any:  # noqa: ANN401  JSON
    if not path.exists():
        path.write_text(json.dumps(make()))
    return json.loads(path.read_text())


def _scored(name: str, cause: Planted, launched: _Launched) -> Score:
    change = statistics.median(head / base for base, _, head in launched.rounds_s) - 1
    by_one, by_three = (
        list(scoring.answers(cause, launched.pairs, size, is_gain=change < 0))
        for size in (FEW, MANY)
    )
    return Score(name=name, planted=cause, change=change, by_one=by_one, by_three=by_three)


def _line(score: Score) -> str:
    first = score.by_three[0].first if score.by_three else score.by_one[0].first
    return f"{score.name}: {score.change:+.1%}; first: {first}"


def _table(scores: Sequence[Score]) -> str:
    lines = [
        "| planted | model | change | one pair | three pairs | kind |",
        "|:--|:--|--:|--:|--:|--:|",
    ]
    lines += [_row(score) for score in scores]
    return "\n".join([*lines, _total(f"all {len(scores)}", scores)])


def _row(score: Score) -> str:
    cells = (
        score.name,
        score.planted.model,
        f"{score.change:+.0%}",
        _share([answer.is_first for answer in score.by_one]) if score.planted.is_exact else _NONE,
        _share([answer.is_first for answer in score.by_three]),
        _share([answer.is_kind for answer in score.by_three]),
    )
    return f"| {' | '.join(cells)} |"


def _total(name: str, scores: Sequence[Score]) -> str:
    exact = [score for score in scores if score.planted.is_exact]
    cells = (
        name,
        "",
        "",
        _share([answer.is_first for score in exact for answer in score.by_one]),
        _share([answer.is_first for score in scores for answer in score.by_three]),
        _share([answer.is_kind for score in scores for answer in score.by_three]),
    )
    return f"| {' | '.join(cells)} |"


def _share(answers: Sequence[bool]) -> str:
    return f"{sum(answers)}/{len(answers)}"


def _same(launched: Mapping[str, Sequence[StepProfile]], most: int) -> str:
    """Compare launches of the same base, by one pair and by three: half of the comparisons each."""
    lines = [
        "| base against base | comparisons | with an exact line | with a measured line |",
        "|:--|--:|--:|--:|",
    ]
    for size, words in ((FEW, "one pair"), (MANY, "three pairs")):
        by_model = [list(scoring.same(launches, size)) for launches in launched.values()]
        # In turns, so that a limit leaves all models in.
        mixed = [each for turn in itertools.zip_longest(*by_model) for each in turn if each]
        counted = mixed[: most // 2]
        exact = sum(bool(of_exact) for of_exact, _ in counted)
        measured = sum(bool(of_measured) for _, of_measured in counted)
        lines.append(f"| {words} | {len(counted)} | {exact} | {measured} |")
    return "\n".join(lines)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (RuntimeError, subprocess.CalledProcessError) as error:
        sys.exit(f"a launch failed: {error}")
