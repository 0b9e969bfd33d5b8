"""What all our structs have in common."""

from typing import Annotated, Literal

import msgspec

# History: 1 = first published form (0.1.0).
# Raise it with every change of meaning, and say here what changed.
SCHEMA_VERSION = 1

# What 64 bits and a spreadsheet hold; JSON itself knows no bounds.
LARGEST = 2**63 - 1

Integer = Annotated[int, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
# Neither NaN nor infinity, which TOML can spell and JSON cannot.
Finite = Annotated[float, msgspec.Meta(ge=-1e300, le=1e300)]
Scalar = str | Integer | Finite | bool
Text = Annotated[str, msgspec.Meta(max_length=10_000)]
# A kernel that a compiler has generated.
MAX_SOURCE_CHARS = 1_000_000
Source = Annotated[str, msgspec.Meta(max_length=MAX_SOURCE_CHARS)]
# What is kept of an error that ends something, and of why an instrument shows nothing.
MAX_ERROR_CHARS = 2000
MAX_ABSENT_CHARS = 500
# Names become names of files and arguments of commands: none is "..", a switch or a formula.
# Python's `$` alone would let a line feed follow.
NAME = r"[A-Za-z0-9_][A-Za-z0-9_.=+-]*"
_END = r"(?!\n)$"
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=f"^{NAME}{_END}")]
NameOrEmpty = Annotated[str, msgspec.Meta(max_length=200, pattern=f"^({NAME})?{_END}")]
# The name of a parameter, which stands before "=" in the id of a workload.
Key = Annotated[
    str, msgspec.Meta(min_length=1, max_length=100, pattern=f"^[A-Za-z0-9_][A-Za-z0-9_-]*{_END}")
]
DateOrEmpty = Annotated[
    str, msgspec.Meta(pattern=f"^([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})?{_END}", max_length=10)
]
Side = Literal["base", "head"]
# Which block speaks for a process; docs/measuring.md says when to take which.
Statistic = Literal["median", "p25", "min"]
# As taskset and the engines of containers spell it: "0-3,8".
CPU_LIST = r"^([0-9]{1,5}([-,][0-9]{1,5})*)?(?!\n)$"
CpuList = Annotated[str, msgspec.Meta(max_length=200, pattern=CPU_LIST)]
# Suites of a check that needs none in the repository, and how each is asked for. They have no
# baselines.
COMMAND_SUITE = "builtin:command"
OUTSIDE_SUITES = {COMMAND_SUITE: "-- COMMAND", "builtin:pytest": "--pytest PATH"}
# What a comparison of samples says in the place of the suite.
SAMPLES_SUITE = "samples"
# A suite of the repository, or one that ships with ci-perf: "smoke", "builtin:smoke".
SuiteName = Annotated[
    str,
    msgspec.Meta(min_length=1, max_length=200, pattern=f"^(builtin:)?{NAME}{_END}"),
]
# Thirty years: longer is a damaged file, and would overflow what is calculated from it.
MOST_SECONDS = 1e9
Seconds = Annotated[float, msgspec.Meta(ge=0, le=MOST_SECONDS)]
# No clock of ours ticks faster than once a picosecond.
PositiveSeconds = Annotated[float, msgspec.Meta(ge=1e-12, le=MOST_SECONDS)]
Bytes = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
AtLeastOne = Annotated[int, msgspec.Meta(ge=1, le=LARGEST)]
# The value of any metric, in its unit.
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e19)]
Items = Annotated[float, msgspec.Meta(gt=0, le=1e18)]


class Struct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Frozen and strict; each struct repeats `frozen` and `kw_only`, which type checkers need."""
