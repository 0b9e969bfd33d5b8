"""Names in ci_perf: what a reader may expect of every file. Ceilings only ever fall."""

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "ci_perf"
TREES = {
    path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for path in PACKAGE.rglob("*.py")
}
NODES = [(file, node) for file, tree in TREES.items() for node in ast.walk(tree)]

MOST_RENAMED_IMPORTS = 21
CLASSES_OF_ONE_NAME = 0

# Names that say nothing of the thing that they stand for. `found` is left where an error is built
# of what was expected and what was found.
EMPTY_NAMES = {"found": 3, "one": 0}

# How many identifiers still have a forbidden word.
LEFT_OF_FORBIDDEN_WORDS = {
    "room": 3,
    "trouble": 1,
    "turns": 2,
}

GLOSSARY = (PACKAGE.parent / "docs/glossary.md").read_text(encoding="utf-8")
DEFINED = [
    word
    for cell in re.findall(r"^\| ([^|]+) \|", GLOSSARY, re.MULTILINE)
    for word in cell.split(", ")
]
# Synonyms, and the word that the code has instead.
FORBIDDEN = {
    "sitting": "session",
    "turns": "pair",
    "surroundings": "environment",
    "chronicle": "history",
    "standing": "severity",
    "standings": "severity",
    "trouble": "failure",
    "seat": "slot",
    "patience": "retry policy, timeout",
    "wishes": "options",
    "doubts": "trust notes",
    "believing": "trust",
    "keeping": "machine report",
    "pace": "time left",
    "shield": "deferred signals",
    "room": "package; of memory: memory check",
    "beside": "the thing itself, for example the base",
    "way": "the thing itself, for example the hint",
}


def stored(node):
    """Name what a node defines: a variable, parameter, field, function, class or import."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            return name
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
            return name
        case ast.alias(name=name, asname=other):
            return other or name.rpartition(".")[2]
        case ast.MatchAs(name=str(name)) | ast.ExceptHandler(name=str(name)):
            return name
        case _:
            return None


IDENTIFIERS = Counter(name for _, node in NODES if (name := stored(node)))
IDENTIFIERS.update(Path(file).stem for file in TREES)


def words(identifier):
    """Split `_peakBytes`, `PeakBytes` and `peak_bytes` into peak and bytes."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", identifier).lower().split("_")


@pytest.mark.parametrize("name", EMPTY_NAMES)
def test_a_name_says_what_the_thing_is(name):
    assert IDENTIFIERS[name] <= EMPTY_NAMES[name]


@pytest.mark.parametrize("word", FORBIDDEN)
def test_identifiers_use_the_words_of_the_glossary(word):
    named = sorted(name for name in IDENTIFIERS if word in words(name))

    assert len(named) <= LEFT_OF_FORBIDDEN_WORDS.get(word, 0), f"{named}: {FORBIDDEN[word]}"


@pytest.mark.parametrize("word", sorted({*DEFINED} - {"word"}))
def test_a_word_that_the_glossary_defines_is_used(word):
    pages = [page for page in (PACKAGE.parent / "docs").glob("*.md") if page.name != "glossary.md"]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    in_code = re.split(r"[ -]", word)[-1] in {part for name in IDENTIFIERS for part in words(name)}

    assert in_code or any(word in text for text in texts)


def test_a_public_class_has_a_name_of_its_own():
    files = defaultdict(list)
    for file, node in NODES:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            files[node.name].append(file)
    doubled = {name: where for name, where in files.items() if len(where) > 1}

    assert len(doubled) <= CLASSES_OF_ONE_NAME, doubled


def test_modules_are_seldom_imported_by_another_name():
    renamed = [
        f"{file}: {node.name} as {node.asname}"
        for file, node in NODES
        if isinstance(node, ast.alias) and node.asname
    ]

    assert len(renamed) <= MOST_RENAMED_IMPORTS, renamed
