"""Find the commit where a change began, or one by its name; never write or fetch anything."""

import difflib
import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePath

from ci_perf.errors import CiPerfError, UsageError
from ci_perf.system import git
from ci_perf.system.processes import Completed

# A long history without a commit graph, a large tree on a slow disk.
_ANSWER_S = 300.0

_HASH = re.compile(r"[0-9a-f]{7,64}")
# What git allows in no name, and uses to lead from one commit to another: HEAD~1, main@{yesterday}.
_EXPRESSION = re.compile(r"[~^:?*\[\\\s]|\.\.|@\{")
_IN_ACTIONS = "(`fetch-depth: 0` for actions/checkout)"
_SHOWN = 12
# Two letters that have changed places in a name of four are alike.
_ALIKE = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where a change began: commit `commit` of the repository that is checked out at `top`.

    ``inside`` leads from there to the folder that was asked for. ``called`` is what messages call
    the commit.
    """

    top: Path
    inside: PurePath
    commit: str
    notes: tuple[str, ...] = ()
    called: str = "the base"


def find(root: Path, ref: str, *, may_be_head: bool = False) -> Start:
    """Find the commit that HEAD and `ref` have both grown from; `may_be_head` says it may be HEAD.

    Raises UsageError for what was asked wrongly, CiPerfError for what is missing here.
    """
    top = _top(root)
    head = _commit(root, "HEAD")
    if head is None:
        raise UsageError(
            f"{root}: expected a commit to compare, found a repository without any; commit first"
        )
    commit = _find_shared(root, ref, _resolve_ref(root, ref))
    notes = _notes(
        commit, is_head=head == commit and not may_be_head, is_dirty=git.source(root).dirty
    )
    return Start(top=top, inside=_inside(root, top), commit=commit, notes=notes)


def exactly(root: Path, ref: str) -> Start:
    """Find the commit that `ref` names itself. Raises as `find` does."""
    top = _top(root)
    return Start(
        top=top, inside=_inside(root, top), commit=_resolve_ref(root, ref), called="the commit"
    )


def check(root: Path, ref: str) -> None:
    """Find out before anybody measures that `ref` names nothing. Raises as `find` does.

    A shallow clone may lack what those that measure have: there, nothing is checked.
    """
    if not _is_shallow(root):
        find(root, ref)


def shown(commit: str) -> str:
    """Shorten a commit for people."""
    return commit[:_SHOWN]


def _inside(root: Path, top: Path) -> PurePath:
    return Path(os.path.realpath(root)).relative_to(os.path.realpath(top))


def _ask(root: Path, *arguments: str) -> Completed:
    return git.run(root, *arguments, timeout_s=_ANSWER_S)


def _top(root: Path) -> Path:
    """Return the top of the working tree that `root` lies in."""
    answer = _ask(root, "rev-parse", "--is-bare-repository", "--show-toplevel")
    bare, _, top = answer.out.partition("\n")
    if answer.code == 0:
        return Path(top)
    if "dubious ownership" in answer.err:
        raise CiPerfError(
            f"{root}: git refuses a repository of another user; `git config --global --add "
            "safe.directory` with its path allows it",
            output=answer.err,
        )
    if "not a git repository" in answer.err:
        raise UsageError(
            f"{root}: expected a git repository that holds the base, found none; check it out "
            "with its history, or compare with the committed baselines alone"
        )
    if bare == "true":
        raise UsageError(
            f"{root}: expected a working tree that is the head, found a bare repository; run "
            "ci-perf in a clone of it"
        )
    raise CiPerfError(
        f"{root}: `git rev-parse --show-toplevel` failed; see its output",
        output=answer.err,
    )


def _commit(root: Path, ref: str) -> str | None:
    answer = _ask(root, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    return answer.out if answer.code == 0 else None


def _resolve_ref(root: Path, ref: str) -> str:
    """Return the commit that `ref` names. Raises UsageError."""
    commit = None if ref.startswith("-") or not ref else _commit(root, ref)
    if commit is None:
        raise UsageError(
            f"{ref or 'the empty name'}: expected a branch, tag or commit of this repository, "
            f"found none; {_where_it_is(root, ref)}"
        )
    _check_ambiguous(root, ref)
    return commit


def _check_ambiguous(root: Path, ref: str) -> None:
    """Refuse a tag that hides a branch: git would take the tag. Raises CiPerfError."""
    places = [f"refs/{kind}/{ref}" for kind in ("heads", "remotes", "tags")]
    form = "--format=%(refname) %(objectname) %(*objectname)"
    listed = [line.split() for line in _ask(root, "for-each-ref", form, *places).out.splitlines()]
    commits = {name: objects[-1] for name, *objects in listed if name in places}
    if places[2] in commits and len({*commits.values()}) > 1:
        raise CiPerfError(f"`{ref}` names a tag and a branch: write {min(commits)}")


def _where_it_is(root: Path, ref: str) -> str:
    if not ref or ref.startswith("-"):
        return "name a branch, such as `main`"
    if _commit(root, f"origin/{ref}") is not None:
        return f"`origin/{ref}` is one: name that"
    elsewhere = _how_to_deepen(ref) if _is_shallow(root) else _how_to_fetch(ref)
    near = _nearest(root, ref)
    return f"did you mean `{near}`? If not, {elsewhere}" if near else elsewhere


def _nearest(root: Path, ref: str) -> str:
    """Return the branch or tag that is spelled most alike; empty where none is."""
    if not _is_name(ref):
        return ""
    form = "--format=%(refname:short)"
    names = _ask(root, "for-each-ref", form, "refs/heads", "refs/remotes", "refs/tags").out.split()
    # Of two names on the same remote, what they share there is no likeness.
    remote = "origin/" if ref.startswith("origin/") else ""
    known = [name.removeprefix(remote) for name in names if name.startswith(remote)]
    near = difflib.get_close_matches(ref.removeprefix(remote), known, n=1, cutoff=_ALIKE)
    return remote + near[0] if near else ""


def _how_to_deepen(ref: str) -> str:
    """Say what brings a ref to a shallow clone, and what it has grown from, which is needed too."""
    branch = ref.removeprefix("origin/")
    if not _is_name(ref):
        return f"this clone is shallow: `git fetch --unshallow` brings its history {_IN_ACTIONS}"
    fetch = f"git fetch --unshallow {_refspec(branch)}"
    return f"`{fetch}` brings it to this shallow clone {_IN_ACTIONS}; then name `origin/{branch}`"


def _how_to_fetch(ref: str) -> str:
    if _HASH.fullmatch(ref):
        return f"`git fetch origin {ref}` brings it"
    if not _is_name(ref):
        return "name a branch, such as `main`, or a commit that is here"
    branch = ref.removeprefix("origin/")
    return f"`git fetch {_refspec(branch)}` brings it; then name `origin/{branch}`"


def _is_name(ref: str) -> bool:
    return not (_HASH.fullmatch(ref) or _EXPRESSION.search(ref))


def _refspec(branch: str) -> str:
    """Spell where a branch comes from; where it goes is needed in a clone of a single branch."""
    return f"origin {branch}:refs/remotes/origin/{branch}"


def _find_shared(root: Path, ref: str, tip: str) -> str:
    """Return the best common ancestor of HEAD and `tip`."""
    answer = _ask(root, "merge-base", "HEAD", tip)
    if answer.code == 0:
        return answer.out
    if answer.code != 1:
        raise CiPerfError(
            f"{ref}: `git merge-base` failed; see its output",
            output=answer.err,
        )
    if _is_shallow(root):
        raise CiPerfError(
            f"{ref}: no common commit with HEAD in this shallow clone; "
            f"`git fetch --unshallow` brings the history {_IN_ACTIONS}"
        )
    raise UsageError(
        f"{ref}: no common commit with HEAD, unrelated histories; name the branch that this change "
        "started from"
    )


def _is_shallow(root: Path) -> bool:
    return _ask(root, "rev-parse", "--is-shallow-repository").out == "true"


def _notes(commit: str, *, is_head: bool, is_dirty: bool) -> tuple[str, ...]:
    name = shown(commit)
    if is_head and is_dirty:
        return (f"head and base are the same commit, {name}; uncommitted changes are the head's",)
    if is_head:
        raise CiPerfError(
            f"base and head are the same commit, {name}, and no tracked file has changed: there is "
            "nothing to compare; check out the change, or name an older commit"
        )
    if is_dirty:
        return ("uncommitted changes are measured as part of the head",)
    return ()
