"""What ci-perf does, as functions: measure, check, compare, judge, accept, calibrate.

They print nothing, and know no command line and no network: `notify` is called with every line that
a person should read, a listener follows the progress of a run.
"""

from typing import get_args

from ci_perf.errors import UsageError
from ci_perf.model.suite import FailOn


def check_fail_on(fail_on: FailOn | None) -> None:
    """Raise UsageError for what is none of its words; `None` leaves it to suite.toml."""
    if fail_on is not None and fail_on not in (known := get_args(FailOn)):
        raise UsageError(f"fail_on: expected one of {', '.join(known)}, found {fail_on!r}")
