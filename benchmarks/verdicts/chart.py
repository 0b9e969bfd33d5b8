"""Power against false alarms, one panel per data set, as an SVG that needs no library."""

from collections.abc import Mapping, Sequence
from html import escape

from benchmarks.verdicts.scores import Score

# The size of change whose power is drawn, and its direction.
EFFECT = 0.03
PANEL, GAP, COLUMNS = 230, 70, 3
LEFT, TOP, LEGEND = 70, 80, 240
# Rules that lie no further apart than this, in percent across and up, share a mark.
NEAR = (12, 6)
OURS, PEER, INK, GRID = "#b3261e", "#1f5f8b", "#222222", "#d5d5d5"


def draw(scores: Mapping[str, Sequence[Score]]) -> str:
    """Return the chart; the first rule of each panel is ours. Up and left is better."""
    rules = [score.name for score in next(iter(scores.values()))]
    rows = -(-len(scores) // COLUMNS)
    width = LEFT + COLUMNS * (PANEL + GAP) + LEGEND
    height = TOP + rows * (PANEL + GAP)
    panels = [
        _panel(name, panel, *_corner(place)) for place, (name, panel) in enumerate(scores.items())
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">',
            f'<rect width="{width}" height="{height}" fill="white"/>',
            _text(
                LEFT,
                28,
                f"A slow-down of {100 * EFFECT:.0f} % found, against unchanged pull requests "
                "with a false alarm (20 workloads each)",
                size=15,
            ),
            _text(LEFT, 46, "Up and left is better. Rules that lie close share a mark."),
            *panels,
            _legend(rules, LEFT + COLUMNS * (PANEL + GAP), TOP),
            "</svg>\n",
        ]
    )


def _corner(place: int) -> tuple[int, int]:
    return LEFT + place % COLUMNS * (PANEL + GAP), TOP + place // COLUMNS * (PANEL + GAP)


def _panel(name: str, scores: Sequence[Score], left: int, top: int) -> str:
    parts = [_text(left, top - 8, name, size=13)]
    for percent in (0, 25, 50, 75, 100):
        x, y = left + PANEL * percent / 100, top + PANEL * (1 - percent / 100)
        parts.append(_rule(left, y, left + PANEL, y))
        parts.append(_rule(x, top, x, top + PANEL))
        parts.append(_text(left - 6, y + 4, str(percent), anchor="end"))
        parts.append(_text(x, top + PANEL + 15, str(percent), anchor="middle"))
    middle = left + PANEL / 2
    parts.append(_text(middle, top + PANEL + 31, "false alarms, % of pull requests", "middle"))
    parts.append(
        f'<g transform="rotate(-90 {left - 34} {top + PANEL / 2})">'
        + _text(left - 34, top + PANEL / 2, "found, %", "middle")
        + "</g>"
    )
    return "\n".join([*parts, *_marks(scores, left, top)])


def _marks(scores: Sequence[Score], left: int, top: int) -> list[str]:
    marks = []
    for numbers in _neighbours([_place(score) for score in scores]):
        percents = [_place(scores[number]) for number in numbers]
        across, up = (sum(axis) / len(axis) for axis in zip(*percents, strict=True))
        x, y = left + PANEL * across / 100, top + PANEL * (1 - up / 100)
        colour = OURS if 0 in numbers else PEER
        marks.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>')
        label = " ".join("ours" if number == 0 else str(number) for number in numbers)
        # Labels stay inside the panel, and above the mark only where there is room; ours lies
        # below, because whoever comes close to it lies above.
        anchor, shift = ("start", 7) if across <= 50 else ("end", -7)
        below = 13 if up >= 97 or 0 in numbers else -5
        marks.append(_text(x + shift, y + below, label, anchor, colour=colour))
    return marks


def _place(score: Score) -> tuple[float, float]:
    """Return where a rule lies: percent of pull requests alarmed, percent of changes found."""
    power = score.by_effect[EFFECT].right
    return 100 * score.alarmed_pull_requests.share, 100 * power.share


def _neighbours(places: Sequence[tuple[float, float]]) -> list[list[int]]:
    """Return the rules that share a mark; ours shares one only with what lies beneath it."""
    groups: list[list[int]] = []
    for number, (across, up) in enumerate(places):
        for group in groups:
            near_across, near_up = (1, 1) if group[0] == 0 else NEAR
            first = places[group[0]]
            if abs(across - first[0]) <= near_across and abs(up - first[1]) <= near_up:
                group.append(number)
                break
        else:
            groups.append([number])
    return groups


def _legend(rules: Sequence[str], left: int, top: int) -> str:
    lines = [
        _text(
            left,
            top + 17 * place,
            f"{'ours' if place == 0 else place}  {rule}",
            colour=OURS if place == 0 else PEER,
            size=12,
        )
        for place, rule in enumerate(rules)
    ]
    return "\n".join(lines)


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{GRID}"/>'


def _text(
    x: float, y: float, words: str, anchor: str = "start", *, size: int = 11, colour: str = INK
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
        f'font-family="sans-serif" font-size="{size}" '
        f'fill="{colour}">{escape(words)}</text>'
    )
