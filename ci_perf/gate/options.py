"""The options of a measurement, declared once: the command line and the Python API read them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ci_perf import suite as suites
from ci_perf.gate.commit_suite import RepositoryFolders
from ci_perf.gate.runners import Runner
from ci_perf.model.base import Scalar
from ci_perf.model.run import Run
from ci_perf.model.suite import Threads

# Of a pull request: "unknown" where nothing tells, None where there is none.
ChecksBefore = int | Literal["unknown"] | None
# Most runs have ended after this time.
_LOCK_TIMEOUT_S = 1800.0
_EXPLAIN_S = 60.0
# More than a person would wait for.
MOST_PROCESSES = 100


def option(default: Any, flag: str, text: str, **click: Any) -> Any:  # noqa: ANN401  of any type
    """Declare a field that is an option of the command line; ``click`` is what click is told."""
    return field(default=default, metadata={"flag": flag, "help": text, **click})


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureOptions(RepositoryFolders):
    """What is measured, where and for how long; times are in seconds.

    ``root`` is the repository. Without a ``suite``, see `suite.choose`; without ``select``, all its
    workloads. Also an interrupted run is in ``output``. ``unit`` is the id of the unit of work,
    where these are the options of one, and ``suspects`` how many metrics of all units share the
    chance of a false alarm. Without ``awaits_quiet``, the machine is measured as it is. ``home`` is
    the checkout of the user, where ``root`` is that of another commit. ``packages`` are folders of
    packages for the head.
    """

    suite: str = option(
        "",
        "--suite",
        "A suite of suite.toml, or builtin:NAME for a suite that comes with ci-perf. Without "
        "suite.toml, there is one suite, `default`, with each file of --workloads.",
        metavar="NAME",
        show_default="smoke, or the only one",
    )
    select: tuple[str, ...] = ()
    device: str = option(
        "auto",
        "--device",
        "Where to measure. auto: the device of the suite, else the first GPU, else the CPU.",
        metavar="auto|cpu|cuda|cuda:N",
    )
    processes: int | None = option(
        None,
        "--processes",
        "Fresh processes per workload. By default as suite.toml says, with --against at most 3.",
        reads="processes",
    )
    threads: Threads | None = option(
        None,
        "--threads",
        "Threads of OpenMP, MKL and torch in each process. own: those of your environment. By "
        "default own for commands, and 1 for workloads and tests.",
        reads="threads",
        metavar="N|own",
        show_default="as suite.toml says",
    )
    wait_s: float | None = option(
        None,
        "--wait",
        "How long to wait for a quiet machine. After this time, ci-perf measures on the busy one. "
        "It waits for another run of ci-perf for 30m, or for this time if longer. 0s: no wait.",
        reads="duration",
        show_default="1m for a CPU, or for a GPU that others use",
    )
    against: str | None = option(
        None,
        "--against",
        "Launch the merge base with REF (a branch, tag or commit) and the head alternately, for "
        "each workload that the baselines do not clear.",
        metavar="REF",
    )
    base_python: Path | None = option(
        None,
        "--base-python",
        "Launch the base by this Python, with its packages: what does an upgrade cost? The base "
        "may be HEAD. Only with --against.",
        hidden=True,
        reads="path",
        metavar="PATH",
    )
    base_image: str | None = option(
        None,
        "--base-image",
        "Launch the base in this image, NAME@sha256:DIGEST, with its packages. The base may be "
        "HEAD. Only with --against, and with a --runner that launches the head in another image.",
        hidden=True,
        metavar="IMAGE",
    )
    budget_s: float = option(
        1200.0,
        "--budget",
        "The time for pairs of base and head: 90s, 20m, 1h. Only with --against.",
        reads="duration",
    )
    add: tuple[Run | Path, ...] = option(
        (),
        "--add",
        "An earlier run: its pairs count, too, where it is of the same commits, machine and "
        "software. Only with --against.",
        hidden=True,
        reads="path",
        multiple=True,
        metavar="RUN.json",
    )
    checks_before: ChecksBefore = option(
        None,
        "--checks-before",
        "How many checks of the same pull request have tested pairs: all share the chance of a "
        "false alarm. 'unknown' makes the report say so.",
        hidden=True,
        reads="count",
        metavar="N",
    )
    all_workloads: bool = option(
        False,  # noqa: FBT003  a default
        "--all",
        "Measure every workload, even if both sides run the same program. Only with --against.",
        is_flag=True,
    )
    fail_fast: bool = option(
        False,  # noqa: FBT003  a default
        "--fail-fast",
        "End at the first proven slowdown. The report names what lacks an answer. For --against.",
        is_flag=True,
    )
    explain_s: float | None = option(
        None,
        "--explain",
        "How long to profile changed workloads, worst first, for the causes. Verdicts stay the "
        "same. 0s: no profiles. Only with --against.",
        reads="duration",
        show_default="1m, and 0s with --fail-fast",
    )
    traces: Path | None = option(
        None,
        "--traces",
        "Write traces of torch.profiler for ui.perfetto.dev, of the first launch of each side: "
        "WORKLOAD.base.pt.trace.json.gz and WORKLOAD.head.pt.trace.json.gz.",
        reads="path",
        metavar="DIR",
    )
    kernels: Path | None = option(
        None,
        "--kernels",
        "Write the code that torch.compile generates into this empty folder, base/ and head/, "
        "for a diff. Only with --against.",
        hidden=True,
        reads="path",
        metavar="DIR",
    )
    runner: Runner = field(default_factory=Runner)
    output: Path | None = None
    unit: str = ""
    suspects: int = 0
    awaits_quiet: bool = True
    packages: tuple[str, ...] = ()
    home: Path | None = None

    def __post_init__(self) -> None:
        """Choose the suite where none is named. Raises UsageError and InvalidFileError."""
        chosen = suites.choose(Path(self.root, self.workloads), self.suite)
        object.__setattr__(self, "suite", chosen)

    @property
    def protocol(self) -> dict[str, Scalar]:
        """The settings of the protocol that these options replace."""
        asked: dict[str, Scalar | None] = {"processes": self.processes, "threads": self.threads}
        return {name: value for name, value in asked.items() if value is not None}

    @property
    def explain_budget_s(self) -> float | None:
        """How long profiling may take: 0 only says that it did not, `None` asks for none."""
        if self.explain_s is None:
            return 0.0 if self.fail_fast and self.traces is None else _EXPLAIN_S
        return self.explain_s or None

    @property
    def lock_timeout_s(self) -> float:
        """How long another run may hold the device."""
        return find_lock_timeout_s(self.wait_s)


def find_lock_timeout_s(wait_s: float | None) -> float:
    """Return how long to wait for another run, which itself waits for a quiet machine first."""
    return 0.0 if wait_s == 0 else max(_LOCK_TIMEOUT_S, wait_s or 0.0)
