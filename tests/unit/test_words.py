"""How hard README and docs are to read, counted: each limit may only fall."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
NEGATIONS = r"\b(?:no|not|never|nothing|nobody|none|neither|nor|without|cannot|nowhere)\b|n't\b"
CLAUSES = r"\b(?:what|who|whoever|whatever|where)\b"
SEMICOLONS = ";"


def prose_of(markdown):
    """Return the sentences of a document: no code, link target, heading or picture."""
    text = re.sub(r"^```.*?^```$", "", markdown, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"</?[a-z][^>]*>", "", text)
    text = re.sub(r"`[^`]*`", "X", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    lines = text.splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith(("#", "|--", "![")))


def count_per_thousand_words(pattern, prose):
    words = len(re.findall(r"[A-Za-z][\w'-]*", prose))
    return 1000 * len(re.findall(pattern, prose, re.IGNORECASE)) / words


def test_what_is_counted():
    prose = prose_of("# No heading\n\nWe do not know `who; it` [is](no.md); you don't.\n")

    assert prose.strip() == "We do not know X is; you don't."
    assert count_per_thousand_words(NEGATIONS, prose) == pytest.approx(1000 * 2 / 8)
    assert count_per_thousand_words(CLAUSES, prose) == 0
    assert count_per_thousand_words(SEMICOLONS, prose) == pytest.approx(1000 / 8)


# Lower a limit when you have rewritten a document.
@pytest.mark.parametrize(
    ("pattern", "most"),
    [(NEGATIONS, 5.2), (CLAUSES, 1.0), (SEMICOLONS, 0.3)],
    ids=["negations", "clauses of what, where and who", "semicolons"],
)
def test_readme_and_docs_are_as_easy_to_read_as_before(pattern, most):
    prose = "\n\n".join(prose_of(path.read_text(encoding="utf-8")) for path in DOCUMENTS)

    assert count_per_thousand_words(pattern, prose) <= most


def test_readme_and_docs_are_no_longer_than_before():
    words = {
        path: len(re.findall(r"\S*[A-Za-z0-9]\S*", path.read_text("utf-8"))) for path in DOCUMENTS
    }

    assert words[ROOT / "README.md"] <= 900
    assert sum(words.values()) <= 30_430
