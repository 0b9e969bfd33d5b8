"""Names in ci_perf: what a reader may expect of every file. Ceilings only ever fall."""

import ast
import functools
import re
from collections import Counter, defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "ci_perf"


@functools.cache
def read_nodes():
    """Parse all files once a test needs them: collecting tests is quick."""
    files = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")}
    trees = {file: ast.parse(path.read_text(encoding="utf-8")) for file, path in files.items()}
    return [(file, node) for file, tree in trees.items() for node in ast.walk(tree)]


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


@functools.cache
def count_identifiers():
    stems = [Path(file).stem for file, node in read_nodes() if isinstance(node, ast.Module)]
    return Counter([*stems, *(name for _, node in read_nodes() if (name := stored(node)))])


def words(identifier):
    """Split `_peakBytes`, `PeakBytes` and `peak_bytes` into peak and bytes."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", identifier).lower().split("_")


@functools.cache
def find_by_word():
    """Return the identifiers that have each word."""
    by_word = defaultdict(set)
    for name in count_identifiers():
        for word in words(name):
            by_word[word].add(name)
    return dict(by_word)


def test_a_name_says_what_the_thing_is():
    counts = {name: count_identifiers()[name] for name in EMPTY_NAMES}

    assert {name: n for name, n in counts.items() if n > EMPTY_NAMES[name]} == {}


def test_identifiers_use_the_words_of_the_glossary():
    too_often = {
        f"{word}: {better}": names
        for word, better in FORBIDDEN.items()
        if len(names := find_by_word().get(word, ())) > LEFT_OF_FORBIDDEN_WORDS.get(word, 0)
    }

    assert too_often == {}


def test_a_word_that_the_glossary_defines_is_used():
    pages = [page for page in (PACKAGE.parent / "docs").glob("*.md") if page.name != "glossary.md"]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    unused = [
        word
        for word in {*DEFINED} - {"word"}
        if word not in text and re.split(r"[ -]", word)[-1] not in find_by_word()
    ]

    assert unused == []


def test_a_public_class_has_a_name_of_its_own():
    files = defaultdict(list)
    for file, node in read_nodes():
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            files[node.name].append(file)
    doubled = {name: where for name, where in files.items() if len(where) > 1}

    assert len(doubled) <= CLASSES_OF_ONE_NAME, doubled


def test_a_function_of_a_module_begins_with_a_verb():
    """`moved` and `of_run` read like values; methods may name events, such as `started`."""
    functions = [
        f"{file}: {node.name}"
        for file, module in read_nodes()
        if isinstance(module, ast.Module)
        for node in module.body
        if isinstance(node, ast.FunctionDef)
        and re.match(r"_?(of_|of$|[a-z]+ed(_|$)|[a-z]+ing(_|$))", node.name)
        and words(node.name.strip("_"))[0] not in {"embed", "need", "bring"}
    ]

    assert functions == []


def test_modules_are_seldom_imported_by_another_name():
    renamed = [
        f"{file}: {node.name} as {node.asname}"
        for file, node in read_nodes()
        if isinstance(node, ast.alias) and node.asname
    ]

    assert len(renamed) <= MOST_RENAMED_IMPORTS, renamed
