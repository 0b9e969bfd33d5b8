"""Whose comments are orders, without any network."""

import json

import pytest

from ci_perf.pull_request import bot


@pytest.mark.parametrize(
    ("user", "is_read"),
    [
        ({"login": "octo", "type": "User"}, True),
        ({"login": "Copilot", "type": "Bot"}, False),
        ({"login": "octo/../../x", "type": "User"}, False),
        (None, False),
    ],
)
def test_only_a_person_with_a_name_of_github_gives_orders(user, is_read):
    comment = {"id": 1, "created_at": "", "updated_at": "", "body": "/ci-perf accept", "user": user}
    event = {"action": "created", "issue": {"number": 7, "pull_request": {}}, "comment": comment}

    order = bot.read_order({"GITHUB_EVENT_NAME": "issue_comment"}, json.dumps(event))
    assert (order is not None) is is_read
