"""The listener of a session: it hears what goes on, and may tell a person."""

from collections.abc import Mapping, Sequence

from ci_perf.model import run as runs
from ci_perf.model.comparison import Change, Comparison
from ci_perf.session.schedule import Forecast


class Listener:
    """Hears what goes on. A subclass overrides what it wants to hear; the rest does nothing."""

    def began(self) -> None:
        """Hear that a session begins: all other calls follow."""

    def ended(self) -> None:
        """Hear that the session is over, however it ended."""

    def waiting(self, device: str, owner: str, waited_s: float, most_s: float) -> None:
        """Hear, again and again, that another session is measuring on the device."""

    def machine_busy(self, why: str, waited_s: float, most_s: float) -> None:
        """Hear, every few seconds, why the machine is not quiet, and how long it was waited for."""

    def machine_awaited(self, why: str, waited_s: float) -> None:
        """Hear that waiting is over: the machine is quiet, or `why` says what still disturbs it."""

    def planned(self, processes: Mapping[str, int], pairs_s: float = 0.0) -> None:
        """Hear how many processes of each workload will be launched, and how long pairs may take.

        These follow the processes; 0 s where there is no base.
        """

    def canary_started(self) -> None:
        """Hear that the canaries are being asked."""

    def started(self, workload: str, process: int, of: int) -> None:
        """Hear that process `process` (from 1) of `of` is being launched."""

    def finished(self, workload: str, seconds: float) -> None:
        """Hear that a process delivered its result."""

    def failed(self, failed: runs.Failed, skipped: int) -> None:
        """Hear that a workload failed; its `skipped` further processes will not be launched."""

    def interleaving(self, workloads: Sequence[str], budget_s: float, forecast: Forecast) -> None:
        """Hear whose base will be launched beside the head: what the baselines did not clear.

        Worst first; `forecast` is what the budget will allow.
        """

    def pair_started(self, workload: str, number: int, left: int) -> None:
        """Hear that pair `number` (from 1) is launched, and of how many workloads more may be."""

    def pair_finished(self, workload: str, row: Change | None, most_s: float) -> None:
        """Hear that both have delivered and are judged: the worst row, and the time left at most.

        `row` is `None` where no verdict follows, or nothing of the workload is compared by pairs.
        """

    def base_failed(self, workload: str, reason: str) -> None:
        """Hear that the base of a workload cannot be launched."""

    def decided(self, verdict: Comparison, explaining_s: float) -> None:
        """Hear the verdict, which what follows explains for at most so long; 0 is not at all.

        From here on an interrupt ends what follows, and keeps the verdict.
        """

    def recording(self, workload: str) -> None:
        """Hear that a workload is launched once more, untimed, to record what it takes."""

    def profiling(self, workload: str) -> None:
        """Hear that a workload is launched once more on one side or both, to profile a step."""

    def round_finished(self, number: int, of: int) -> None:
        """Hear that every workload has had its process `number` (from 1) of at most `of`."""
