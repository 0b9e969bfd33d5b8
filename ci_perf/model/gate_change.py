"""What a pull request changes about the gate that judges it."""

from enum import Enum

from ci_perf.model.base import Amount, Name, Struct, Text
from ci_perf.model.suite import Limit
from ci_perf.model.summary import Numbers


class GateKind(Enum):
    """What is changed, in words. The order is that of reports: the most serious first."""

    SUITE = "suite removed"
    REMOVED = "workload removed"
    RENAMED = "workload renamed"
    LESS_WORK = "less work"
    GATE = "gate switched off"
    LIMIT = "limit raised"
    FAIL_ON = "fail_on milder"
    REQUIRE = "answer no longer required"
    ACCEPTED = "own regression accepted"
    BASELINE = "baseline removed"
    OWN_FILE = "workload file changed (numbers of different work)"
    SETTING = "settings changed"


class GateChange(Struct, frozen=True, kw_only=True):
    """One change of the gate; names and texts are foreign.

    ``workload`` is empty where the whole suite is meant, or a file of tests. ``name`` is that of a
    metric, of such a file, or of a setting by its place in suite.toml: "protocol.seed". ``before``
    and ``after`` are limits, values in the metric's unit, or texts: a setting as TOML spells it, or
    the new name of a workload. ``reason`` is that of the session by which a baseline accepts a
    regression, or why a test is skipped.
    """

    kind: GateKind
    workload: Text = ""
    name: Text = ""
    before: Limit | Amount | Text = ""
    after: Limit | Amount | Text = ""
    reason: Text = ""


class BaselineEdit(Struct, frozen=True, kw_only=True):
    """One baseline file that a pull request adds, changes or removes; foreign data.

    ``before`` and ``after`` are headlines, empty where there is no such file. ``accepted`` names
    the metrics of which a new epoch begins, or another history. ``reason`` is that of the session
    that it adds.
    """

    path: Text
    before: Numbers
    after: Numbers
    accepted: tuple[Name, ...] = ()
    reason: Text = ""

    @property
    def workload(self) -> str:
        """Return the id of the workload, after which the file is called."""
        return self.path.rpartition("/")[2].removesuffix(".json")
