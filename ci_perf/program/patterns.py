"""Match paths with patterns as git and `glob` write them: "data/**/*.json"."""

import fnmatch

_ANY_FOLDERS = "**"
_WILD = frozenset("*?[")


def matches(path: str, pattern: str) -> bool:
    """Whether a path matches; "**" stands for any number of folders, or at the end of names."""
    steps = pattern.split("/")
    return len(steps) in _reached(path.split("/"), steps)


def may_hold(folder: str, pattern: str) -> bool:
    """Whether a path below `folder` can match."""
    steps = pattern.split("/")
    return any(position < len(steps) for position in _reached(folder.split("/"), steps))


def fixed_folder(pattern: str) -> str:
    """Return the folder below which all matches lie: "data" of "data/**/*.json"."""
    folders = pattern.split("/")[:-1]
    wild = next((i for i, name in enumerate(folders) if _WILD & {*name}), len(folders))
    return "/".join(folders[:wild])


def _reached(names: list[str], steps: list[str]) -> set[int]:
    """Return how many steps of a pattern these names can have used, each possibility."""
    positions = _with_no_folder({0}, steps)
    for name in names:
        after = set()
        for position in positions:
            if position == len(steps):
                continue
            if steps[position] == _ANY_FOLDERS:
                after |= {position, position + 1} if position + 1 == len(steps) else {position}
            elif fnmatch.fnmatchcase(name, steps[position]):
                after.add(position + 1)
        positions = _with_no_folder(after, steps)
    return positions


def _with_no_folder(positions: set[int], steps: list[str]) -> set[int]:
    """Add the steps that are reached where a "**" stands for no folder."""
    reached = set(positions)
    for position in sorted(positions):
        step = position
        while step < len(steps) - 1 and steps[step] == _ANY_FOLDERS:
            step += 1
            reached.add(step)
    return reached
