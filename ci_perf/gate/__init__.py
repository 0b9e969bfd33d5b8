"""What ci-perf does, as functions: measure, check, compare, judge, accept, calibrate, qualify.

They print nothing, and know no command line and no network: `notify` is called with every line that
a person should read, a listener follows the progress of a run.
"""

from collections.abc import Callable

Notify = Callable[[str], None]
