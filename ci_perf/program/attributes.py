"""Find in .gitattributes the files whose content in a checkout is not the one that git keeps."""

from ci_perf.program import patterns

NAME = ".gitattributes"
_MACRO = "[attr]"
# Names that change the content where they are set, or set to a value. `text` and `eol=lf` change
# nothing in a checkout on Linux.
_CHANGING = ("eol=crlf", "ident", "filter=", "working-tree-encoding=")


def changes(path: str, lines: str) -> str:
    """Return the attribute by which git changes the content of a file in a checkout, or "".

    `path` is below the folder of the .gitattributes with these lines. A later line that unsets an
    attribute is not followed: the file then counts as changed.
    """
    for line in lines.splitlines():
        pattern, *named = line.split()[:100] or [""]
        if pattern.startswith("#"):
            continue
        for attribute in named:
            if attribute.startswith(_CHANGING) and _is_for(path, pattern):
                return attribute
    return ""


def _is_for(path: str, pattern: str) -> bool:
    if pattern.startswith((_MACRO, '"')):
        return True  # a macro may be used anywhere; a quoted pattern is not read
    if "/" not in pattern.rstrip("/"):
        return patterns.matches(path.rpartition("/")[2], pattern)
    return patterns.matches(path, pattern.lstrip("/"))
