"""What `ci-perf history --measure` did: what became of each commit of a line."""

from typing import Literal

from ci_perf.model.base import SCHEMA_VERSION, Struct, SuiteName, Text
from ci_perf.model.commit import Commit
from ci_perf.model.run import Tool

BackfillOutcome = Literal["measured", "known", "passed", "same_program", "failed", "left"]


class BackfilledCommit(Struct, frozen=True, kw_only=True):
    """What became of a commit.

    "measured" has a session in the baselines now, "known" had one before. "passed" is older than
    one that had. "same_program" runs that of the commit that ``note`` names. Of "failed" ones
    ``note`` says why, also where only some of its workloads have failed. "left" is for the next
    call, as a file holds a bounded number of sessions.
    """

    commit: Commit
    outcome: BackfillOutcome
    note: Text = ""


class Backfill(Struct, tag_field="type", tag="backfill", frozen=True, kw_only=True):
    """The commits, oldest first; those after an interrupt are missing.

    ``baselines`` is the folder that has their sessions.
    """

    schema_version: int = SCHEMA_VERSION
    tool: Tool
    suite: SuiteName
    baselines: Text
    is_interrupted: bool = False
    commits: tuple[BackfilledCommit, ...]
