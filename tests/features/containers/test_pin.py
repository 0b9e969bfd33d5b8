"""A digest into suite.toml, and nothing else changed there."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_perf.errors import UsageError
from ci_perf.features.containers import pin

PINNED = f"ghcr.io/us/perf:2.13@sha256:{'0123456789abcdef' * 4}"
LINE = f'image = "{PINNED}"'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f"[container]\n{LINE}\n"),
        ("a = 1", f"a = 1\n\n[container]\n{LINE}\n"),
        ("a = 1\n", f"a = 1\n\n[container]\n{LINE}\n"),
        ("a = 1\r\n", f"a = 1\r\n\r\n[container]\r\n{LINE}\r\n"),
        ("[container]", f"[container]\n{LINE}"),
        ("[container]\n", f"[container]\n{LINE}\n"),
        (
            "[ container ] # where\nmemory = '4g'\n",
            f"[ container ] # where\n{LINE}\nmemory = '4g'\n",
        ),
        (
            "[container]\r\nmemory = '4g'\r\n",
            f"[container]\r\n{LINE}\r\nmemory = '4g'\r\n",
        ),
        ('[container]\nimage = "old:1"\n', f"[container]\n{LINE}\n"),
        ('[container]\r\nimage = "old:1"\r\n[b]\r\n', f"[container]\r\n{LINE}\r\n[b]\r\n"),
        ("[container]\nimage = ''", f"[container]\n{LINE}"),
        (
            "# ours\n[container]\npids = 64 # few\n  image='old' # no\\t \"quote\"\n\n[b]\n",
            f'# ours\n[container]\npids = 64 # few\n  image="{PINNED}" # no\\t "quote"\n\n[b]\n',
        ),
        (
            "[container]\npids = 64\n[other]\nimage = 'not ours'\n",
            f"[container]\n{LINE}\npids = 64\n[other]\nimage = 'not ours'\n",
        ),
        (
            "[container]\n# image = 'an old one'\nimage = 'x'\n",
            f"[container]\n# image = 'an old one'\n{LINE}\n",
        ),
        (f"[container]\n{LINE}\n", f"[container]\n{LINE}\n"),
    ],
)
def test_only_the_image_changes(before, after):
    assert pin.replace_image(before, PINNED) == after


@pytest.mark.parametrize(
    "text",
    [
        'container = { image = "old" }\n',
        'container.image = "old"\n',
        "container.pids = 64\n[b]\n",
        '["container"]\nimage = "old"\n',
        '[container]\n"image" = "old"\n',
        '[container]\nimage = """old"""\n',
        "[container]\nimage = '''old'''\n",
        'note = """\n[container]\n"""\n',
        'note = """\n[container]\nimage = "x"\n"""\n[container]\nimage = "old"\n',
        "[[container]]\n",
        "container = 1\n",
        "no toml",
    ],
)
def test_a_place_that_cannot_be_told_is_refused_with_the_lines_to_paste(text):
    with pytest.raises(UsageError, match="expected a table") as error:
        pin.replace_image(text, PINNED, name="workloads/suite.toml")

    assert str(error.value).startswith("workloads/suite.toml: ")
    assert str(error.value).endswith(f"\n[container]\n{LINE}")


_LINES = st.sampled_from(
    [
        "[container]",
        "[other]",
        "[container.more]",
        "image = 'old'",
        'image = "old" # why',
        "pids = 64",
        "# [container]",
        "",
        'text = """',
        '"""',
        "container.image = 'x'",
        "a = [",
        "]",
    ]
)


@given(st.lists(_LINES, max_size=8).map("\n".join))
def test_whatever_the_file_looks_like_the_rest_of_it_stays(text):
    try:
        changed = pin.replace_image(text, PINNED)
    except UsageError:
        return
    before, after = tomllib.loads(text), tomllib.loads(changed)

    assert after["container"].pop("image") == PINNED
    assert after.pop("container") == {
        key: value for key, value in before.pop("container", {}).items() if key != "image"
    }
    assert after == before
    assert set(text.splitlines()) - set(changed.splitlines()) <= {
        "image = 'old'",
        'image = "old" # why',
    }
