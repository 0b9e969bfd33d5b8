"""A checkout and an attempt as bytes, for nodes that share no folder with the controller.

    python -m ci_perf.fleet.transfer PARENT

runs one attempt on a node: SentAttempt in the first line of stdin, then the repository as a zip;
ReturnedFiles on stdout. It ends with its PARENT, and SIGTERM ends it as it ends node.py. A node
fetches nothing: it is given the commits from the base to the head, and neither the remotes nor the
configuration of the repository, in which CI systems keep tokens.
"""

import io
import os
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ci_perf.errors import CiPerfError, InvalidFileError, UsageError
from ci_perf.fleet import node
from ci_perf.model import codec
from ci_perf.model.base import Name, Struct, Text
from ci_perf.model.fleet import Order, Receipt
from ci_perf.model.shards import WorkUnit
from ci_perf.system import files, git, linux, scratch, signals
from ci_perf.system.scratch import Scratch

MODULE = "ci_perf.fleet.transfer"
# Two files of 50 MiB at most as JSON, which spells three bytes by four letters.
MOST_BYTES = 3 * files.MAX_BYTES
_CHECKOUT = "checkout"
# A large tree on a slow disk.
_CHECKOUT_S = 1800.0
# git gives any commit that it is asked for by its hash, though no branch ends there.
_ANY_COMMIT = "--upload-pack=git -c uploadpack.allowAnySHA1InWant=true upload-pack"
_INTERRUPTED = 143


class SentAttempt(Struct, frozen=True, kw_only=True):
    """What a node is sent that shares no folder with the controller; the checkout comes with it.

    ``folder`` and ``top`` are where the attempt and the checkout lie at the controller: words of
    the order that begin so mean the same place on the node. ``inside`` leads from the top of the
    checkout to the folder in which the command runs.
    """

    order: Order
    unit: WorkUnit
    folder: Text
    top: Text
    inside: Text
    commit: Name


class ReturnedFiles(Struct, frozen=True, kw_only=True):
    """What such a node sends back: its files as they are, `None` without a run."""

    receipt: bytes
    run: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedCheckout:
    """The commits that a node needs. ``against`` is what the node calls the base.

    ``top`` is the top of the working tree, ``inside`` leads from there to the folder to run in.
    """

    top: str
    inside: str
    commit: str
    against: str
    repository: bytes


# --- at the controller


def check(root: Path) -> None:
    """Refuse a checkout of which commits do not say everything. Raises UsageError."""
    if git.run(root, "rev-parse", "--verify", "--quiet", "HEAD").code:
        raise UsageError(
            f"{root}: expected a git repository with a commit, which is sent to the nodes, found "
            "none"
        )
    if changed := git.run(root, "status", "--porcelain", "--untracked-files=no").out.splitlines():
        raise UsageError(
            f"{root}: expected no changed files, since nodes are sent commits, found "
            f"{changed[0].strip()!r} and {len(changed) - 1} more; commit first"
        )


def pack(root: Path, against: str, head: str = "HEAD") -> PackedCheckout:
    """Pack the commits from the base, where `head` and the ref `against` parted, to `head`.

    Without `against` it is `head` alone. Raises UsageError: there is no such base; CiPerfError: git
    cannot read them.
    """
    top, commit = _answer(root, "rev-parse", "--show-toplevel"), _answer(root, "rev-parse", head)
    base = _base(root, against, commit) if against else ""
    # No path from the head to the base has more steps than there are commits between them.
    depth = 1 + (int(_answer(root, "rev-list", "--count", f"{base}..{commit}")) if base else 0)
    name = against if base and _is_name(root, against) else base
    with scratch.folder() as own:
        repository = own.path / _CHECKOUT
        git.read(own.path, "init", "--quiet", "--template=", str(repository))
        fetch = ("fetch", "--quiet", "--no-tags", f"--depth={depth}", _ANY_COMMIT)
        git.read(repository, *fetch, Path(top).as_uri(), commit, timeout_s=_CHECKOUT_S)
        if name != base:
            git.read(repository, "update-ref", _ref(name), base)
        return PackedCheckout(
            top=top,
            inside=_answer(root, "rev-parse", "--show-prefix"),
            commit=commit,
            against=name,
            repository=_zipped(repository / ".git"),
        )


def sent(checkout: PackedCheckout, folder: Path) -> bytes:
    """Return what a node is told of the attempt in `folder`. Raises InvalidFileError."""
    unit = files.read(folder / "unit.json", WorkUnit)
    attempt = SentAttempt(
        order=files.read(folder / node.ORDER, Order),
        unit=msgspec.structs.replace(unit, against=checkout.against),
        folder=str(folder),
        top=checkout.top,
        inside=checkout.inside,
        commit=checkout.commit,
    )
    return msgspec.json.encode(attempt) + b"\n"


def unpack(returned: bytes, folder: Path) -> None:
    """Put what a node has returned into the folder of its attempt, where it is judged.

    Raises InvalidFileError: it is too large, or not what our agent writes; CannotWriteError.
    """
    if len(returned) > MOST_BYTES:
        raise InvalidFileError(f"expected at most {MOST_BYTES} bytes from the node, found more")
    known = codec.decode(returned, ReturnedFiles, name="what the node has sent")
    if known.run is not None:
        files.write_bytes(folder / node.RUN, known.run)
    files.write_bytes(folder / node.RECEIPT, known.receipt)


def _base(root: Path, against: str, head: str) -> str:
    answer = git.run(root, "merge-base", "--end-of-options", head, against)
    if answer.code:
        raise UsageError(
            f"{against}: expected a branch, tag or commit here that shares its history with HEAD, "
            f"found none; `git fetch --unshallow origin` may bring it: {answer.err}"
        )
    return answer.out


def _is_name(root: Path, against: str) -> bool:
    """Whether a ref is a name that can be given to a commit of another repository."""
    full = git.run(root, "rev-parse", "--symbolic-full-name", "--verify", "--quiet", against).out
    is_valid = git.run(root, "check-ref-format", _ref(against)).code == 0
    return full.startswith("refs/") and is_valid and against not in {"HEAD", "@"}


def _ref(name: str) -> str:
    return name if name.startswith("refs/") else f"refs/heads/{name}"


def _answer(root: Path, *arguments: str) -> str:
    return git.read(root, *arguments).decode(errors="surrogateescape").strip("\n")


def _zipped(folder: Path) -> bytes:
    """Return a folder as a zip; git has compressed its objects already."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for path in sorted(folder.rglob("*")):
            if path.name != "FETCH_HEAD":
                archive.write(path, path.relative_to(folder))
    return whole.getvalue()


# --- on the node


def main(arguments: Sequence[str]) -> int:
    """Run one attempt; every failure goes to stderr, which the engine keeps."""
    linux.end_with_parent(int(arguments[0]))
    signals.interrupt()
    try:
        with scratch.folder() as own:
            attempt = codec.decode(sys.stdin.buffer.readline(), SentAttempt, name="the attempt")
            _check_out(attempt, own.path / _CHECKOUT)
            _prepare(attempt, own.path)
            if code := node.run(own.path):
                return code
            sys.stdout.write(codec.encode(_returned(own)))
            return 0
    except KeyboardInterrupt:
        return _INTERRUPTED
    except (CiPerfError, OSError, zipfile.BadZipFile) as error:
        sys.exit(f"{MODULE}: {error}")


def _check_out(attempt: SentAttempt, checkout: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(sys.stdin.buffer.read())) as archive:
        archive.extractall(checkout / ".git")
    git.read(checkout, "checkout", "--quiet", "--detach", attempt.commit, timeout_s=_CHECKOUT_S)


def _prepare(attempt: SentAttempt, folder: Path) -> None:
    """Write order and unit as if the controller had written them for this node."""
    checkout = folder / _CHECKOUT
    python, *words = attempt.order.command
    here = [_here(word, attempt, folder, checkout) for word in words]
    order = msgspec.structs.replace(
        attempt.order, command=(python, *here), cwd=str(checkout / attempt.inside)
    )
    files.write(folder / node.ORDER, order)
    files.write(folder / "unit.json", attempt.unit)


def _here(word: str, attempt: SentAttempt, folder: Path, checkout: Path) -> str:
    for there, here in {attempt.folder: folder, attempt.top: checkout}.items():
        if word == there or word.startswith(f"{there}{os.sep}"):
            return f"{here}{word[len(there) :]}"
    return word


def _returned(own: Scratch) -> ReturnedFiles:
    """Read what the command has left. Raises InvalidFileError: no receipt can be read."""
    receipt = own.read(node.RECEIPT, Receipt)
    if receipt is None:
        raise InvalidFileError(f"{node.RECEIPT}: expected that of this attempt, found none")
    try:
        run = own.read_bytes(node.RUN, limit=files.MAX_BYTES)
    except InvalidFileError as error:
        # A link or a pipe cannot be sent: the receipt says what stood in the run's place.
        run, said = None, f"{receipt.output}\n{error}"
        receipt = msgspec.structs.replace(receipt, output=said)
    return ReturnedFiles(receipt=codec.encode(receipt).encode(), run=run)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
