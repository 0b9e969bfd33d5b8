"""How many checks of a pull request have tested pairs before this one, by our own comment."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from ci_perf.errors import CiPerfError
from ci_perf.gate import Notify
from ci_perf.github import access, actions, report_comment
from ci_perf.github.client import Client
from ci_perf.pull_request import check_record
from ci_perf.system import files


class _Payload(msgspec.Struct):
    action: str = ""


def checks_before(environment: Mapping[str, str], key: str, *, notify: Notify) -> int | None:
    """Return how many checks the comment `key` remembers, of the machine that has most.

    `None` where nothing tells: there is no pull request, GitHub does not say, or the comment is
    missing although the pull request was not just opened.
    """
    try:
        return _known(environment, key, notify)
    except CiPerfError as error:
        notify(f"earlier checks are not known: {error}")
        return None


def _known(environment: Mapping[str, str], key: str, notify: Notify) -> int | None:
    path = environment.get("GITHUB_EVENT_PATH", "")
    payload = files.read_text(Path(path)) if path else ""
    event = actions.read_event(environment, payload)
    if not event.pull:
        notify("earlier checks are not known: this job is of no pull request")
        return None
    client = Client(access.of_job(environment, event.repository))
    sections = report_comment.read(client, event.pull, key)
    if sections is None:
        is_first = event.run.attempt == 1 and _action(payload) == "opened"
        if not is_first:
            notify(f"earlier checks are not known: no comment of ours with the key {key!r}")
        return 0 if is_first else None
    records = [check_record.decode(section.record) for section in sections]
    if any(record is None for record in records):
        notify("earlier checks are not known: what the comment remembers is damaged")
        return None
    return max((record.tested for record in records if record), default=0)


def _action(payload: str) -> str:
    return msgspec.json.decode(payload, type=_Payload).action
