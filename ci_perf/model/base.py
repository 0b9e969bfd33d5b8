"""What all our structs have in common."""

from typing import Annotated, Literal

import msgspec

# History: 1 = first published form (0.1.0).
# Raise it with every change of meaning, and say here what changed.
SCHEMA_VERSION = 1

Scalar = str | int | float | bool
Text = Annotated[str, msgspec.Meta(max_length=10_000)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9_.=+-]+$")]
# Which block speaks for a process; docs/measuring.md says when to take which.
Statistic = Literal["median", "p25", "min"]
# A suite of the repository, or one that ships with ci-perf: "smoke", "builtin:smoke".
SuiteName = Annotated[
    str,
    msgspec.Meta(min_length=1, max_length=200, pattern=r"^(builtin:)?[A-Za-z0-9_.=+-]+$"),
]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
Bytes = Annotated[int, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=0)]


class Struct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Frozen and strict; each struct repeats `frozen` and `kw_only`, which type checkers need."""
