"""Write a trace for people: compressed, and without what it tells of the machine.

The lines of Kineto's JSON are changed as text, so that a trace of any length takes little memory.
"""

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ci_perf.model.task import MOST_TRACE_BYTES

# Whole lines of so many characters are changed at a time.
_BATCH_CHARS: Final = 1 << 20
_WHOSE: Final = re.compile(
    r'("(?:host_?name|user_?name|user)"\s*:\s*)"(?:[^"\\]|\\.)*"', re.IGNORECASE
)
_MAY_TELL: Final = re.compile("/|host|user", re.IGNORECASE)
# A whole string that is a path may have blanks; one within a text ends at a blank.
_SLASH: Final = r"(?:\\?/)"
_WHOLE_PATH: Final = re.compile(rf'"{_SLASH}(?:[^"/\\]+{_SLASH})+([^"/\\]*)"')
_PATH: Final = re.compile(
    rf"(?<![\w.\-…]){_SLASH}(?:[^\s\"'/\\:,;<>()]+{_SLASH})+([^\s\"'/\\:,;<>()]*)"
)


def write(source: Path, target: Path, root: str) -> str:
    """Write the trace `source` as gzipped `target`; else return why there is none.

    Paths below `root`, the repository, become relative to it; of other absolute ones only the last
    part stays. Raises OSError.
    """
    scrub = scrubber(root)
    with (
        source.open(encoding="utf-8", errors="replace", newline="") as lines,
        target.open("wb") as file,
        gzip.open(file, "wt", encoding="utf-8", compresslevel=6, newline="") as packed,
    ):
        while batch := lines.readlines(_BATCH_CHARS):
            # Few lines have any of it, and the expressions are slow; so are many short writes.
            text = "".join(batch)
            if _MAY_TELL.search(text):
                text = "".join(scrub(line) if _MAY_TELL.search(line) else line for line in batch)
            packed.write(text)
            if file.tell() > MOST_TRACE_BYTES:
                break
    if target.stat().st_size <= MOST_TRACE_BYTES:
        return ""
    target.unlink()
    return f"the trace is larger than {MOST_TRACE_BYTES // 2**20} MiB, gzipped"


def scrubber(root: str) -> Callable[[str], str]:
    """Return what takes host, user and absolute paths out of a text."""
    below = re.compile(rf"(?<![\w.\-]){re.escape(root.rstrip('/'))}/(?=[\w.\-])")

    def scrub(text: str) -> str:
        text = _WHOSE.sub(r'\1""', below.sub("", text.replace("\\/", "/")))
        return _PATH.sub(r"…/\1", _WHOLE_PATH.sub(r'"…/\1"', text))

    return scrub
