"""What a checkout must not do where it is measured in containers: lead out of itself by links.

Without a container, the measured code has every right that we have. In one it has few, and we must
not lend it ours: to read what it could not, or to write where it could not.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from ci_perf import suite as suites
from ci_perf.errors import UsageError
from ci_perf.model.suite import Plan


def check_mounts(plan: Plan, workloads: Path) -> None:
    """Refuse what would show a container more than was meant. Raises UsageError."""
    root = Path(plan.root)
    if root in {Path("/"), _home()}:
        raise UsageError(
            f"{root}: expected the root of a repository, found the whole of a "
            f"{'machine' if root == Path('/') else 'home'}, which a container would see; change "
            "into the repository"
        )
    meant = [root, Path(os.path.realpath(suites.shipped("workloads")))]
    folder = _spelled(root / workloads)
    if not folder.is_relative_to(root):  # named by whoever starts ci-perf, and no link of a commit
        meant.append(Path(os.path.realpath(folder)))
    for one in plan.workloads:
        if not any(Path(one.file).is_relative_to(place) for place in meant):
            raise UsageError(
                f"workload {one.id}: expected a file of {root}, found a link that leads to "
                f"{one.file}; a container sees the checkout, and nothing that it links to"
            )


def check_outputs(paths: Iterable[Path | None]) -> None:
    """Refuse to write through a link of the checkout that leads out of it. Raises UsageError."""
    here = Path.cwd()
    root = Path(os.path.realpath(here))
    for path in paths:
        if path is None:
            continue
        target = Path(os.path.realpath(path))
        if _spelled(path).is_relative_to(here) and not target.is_relative_to(root):
            raise UsageError(
                f"{path}: expected a file below {here}, found a link that leads to {target}; "
                "remove it, or name that file itself"
            )


def _spelled(path: Path) -> Path:
    """Return a whole path as a person means it, before any link is followed."""
    return Path(os.path.abspath(path))  # noqa: PTH100  `resolve` would follow links


def _home() -> Path | None:
    try:
        return Path(os.path.realpath(Path.home()))
    except RuntimeError:  # a user without a name and without HOME
        return None
