"""The notes of a release are the lines of its version in CHANGELOG.md."""

import pytest

from release import notes

ADDRESS = "https://github.com/octo/ci_perf"
CHANGELOG = """# Changelog

## [Unreleased]

- To come.

## [0.2.0] - 2026-12-01

- **New** ([page](docs/page.md#top), [site](https://example.org), [here](#top)).

### Mended

- One fault.

## [0.1.0] - 2026-11-01

- First.
"""


@pytest.fixture
def root(tmp_path):
    (tmp_path / "ci_perf").mkdir()
    (tmp_path / "ci_perf/version.py").write_text('__version__ = "0.2.0"\n')
    (tmp_path / "pyproject.toml").write_text(f'[project.urls]\nRepository = "{ADDRESS}"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    return tmp_path


def test_notes_are_the_entries_of_one_version_and_their_links_lead_to_its_files(root):
    assert notes.write_notes(root, "v0.2.0", ADDRESS) == (
        f"- **New** ([page]({ADDRESS}/blob/v0.2.0/docs/page.md#top), "
        "[site](https://example.org), [here](#top)).\n\n### Mended\n\n- One fault.\n"
    )


@pytest.mark.parametrize(
    ("tag", "address", "changelog", "error"),
    [
        ("v0.1.0", ADDRESS, CHANGELOG, "expected the version of tag v0.1.0, found 0.2.0"),
        ("0.2.0", ADDRESS, CHANGELOG, "expected the version of tag 0.2.0, found 0.2.0"),
        ("v0.2.0", f"{ADDRESS}2", CHANGELOG, "expected Repository = .*_perf2, found"),
        ("v0.2.0", ADDRESS, CHANGELOG.replace("[0.2.0]", "[0.2.00]"), "found none"),
        ("v0.2.0", ADDRESS, "## [0.2.0]\n\n## [0.1.0]\n\n- First.\n", "found none"),
    ],
)
def test_a_tag_that_cannot_be_released_is_refused(root, tag, address, changelog, error):
    (root / "CHANGELOG.md").write_text(changelog)

    with pytest.raises(SystemExit, match=error):
        notes.write_notes(root, tag, address)
