"""A digest into suite.toml, and nothing else changed there."""

import pytest

from ci_perf.errors import UsageError
from ci_perf.features.containers import pin

PINNED = f"ghcr.io/us/perf:2.13@sha256:{'0123456789abcdef' * 4}"
LINE = f'image = "{PINNED}"'


@pytest.mark.parametrize(
    ("before", "old", "after"),
    [
        ("", "", f"[container]\n{LINE}\n"),
        ("a = 1", "", f"a = 1\n\n[container]\n{LINE}\n"),
        ("a = 1\n", "", f"a = 1\n\n[container]\n{LINE}\n"),
        ('[container]\r\nimage = "old:1"\r\n[b]\r\n', "old:1", f"[container]\r\n{LINE}\r\n[b]\r\n"),
        (
            "# old\n[container]\npids = 64 # few\n  image='old' # no\\t \"quote\"\n\n[b]\n",
            "old",
            f'# old\n[container]\npids = 64 # few\n  image="{PINNED}" # no\\t "quote"\n\n[b]\n',
        ),
        ('container = { image = "old" }\n', "old", f"container = {{ {LINE} }}\n"),
        (f"[container]\n{LINE}\n", PINNED, f"[container]\n{LINE}\n"),
    ],
)
def test_only_the_image_changes(before, old, after):
    assert pin.replace_image(before, old, PINNED) == after


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("[container]\npids = 64\n", ""),
        ("container.pids = 64\n", ""),
        ('[container]\nimage = "ol\\u0064"\n', "old"),
        ('a = "old"\n[container]\nimage = "old"\n', "old"),
        ('# not "old"\n[container]\nimage = "old"\n', "old"),
    ],
)
def test_a_place_that_cannot_be_told_is_refused_with_the_lines_to_paste(text, old):
    with pytest.raises(UsageError, match="expected a table") as error:
        pin.replace_image(text, old, PINNED, name="workloads/suite.toml")

    assert str(error.value).startswith("workloads/suite.toml: ")
    assert str(error.value).endswith(f"\n[container]\n{LINE}")
