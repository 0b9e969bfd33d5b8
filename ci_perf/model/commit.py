"""A commit of a branch, as documents name it."""

from typing import Annotated, Final

import msgspec

from ci_perf.model.base import Name, Struct, Text

# Git holds any date, those of far ages too.
MOST_DAYS: Final = 1e6


class Commit(Struct, frozen=True, kw_only=True):
    """A commit of the branch. ``date`` is when it was committed, in UTC; ``title`` its first line.

    ``age_days`` is how far its date lay from the moment when the history was read.
    """

    id: Name
    author: Text
    date: Text
    title: Text
    age_days: Annotated[float, msgspec.Meta(ge=0, le=MOST_DAYS)] = 0.0
