"""Texts that a person reviews, as files in a folder `golden`: README.md says how to write them."""

import os
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"


def assert_reviewed(text, path):
    if os.environ.get("REWRITE_GOLDEN"):
        path.write_text(text, encoding="utf-8")

    assert text == path.read_text(encoding="utf-8")


def assert_all_reviewed(texts, path):
    """Ask for several texts in one file, each below its heading."""
    parts = [f"# {heading}\n\n{text.rstrip()}\n" for heading, text in texts.items()]
    assert_reviewed("\n".join(parts), path)
