"""Whether two versions of a Python file are the same code, and what a program sees beyond code.

The sources may be a stranger's: they are parsed, never run, and bounded before they are parsed.
"""

import ast
import io
import re
import tokenize
import warnings

# The largest module of torch has 0.6 MiB; the tree of a source takes some hundred times its size.
_MOST_BYTES = 2**20
# Any other codec may be one that an installed package brings: it would be run.
_ENCODINGS = {"ascii", "iso-8859-1", "utf-8", "utf-8-sig"}
_UNPARSABLE = (MemoryError, OverflowError, RecursionError, SyntaxError, SystemError, UnicodeError)

# What shows a program its line numbers, such as the format of a message.
_SHOW_LINES = re.compile(
    rb"\b(__code__|_current_frames|_getframe|catch_warnings\(record|co_firstlineno|co_linetable"
    rb"|co_lines|co_lnotab|co_positions|cProfile|cloudpickle|currentframe|dill|dis|extract_stack"
    rb"|extract_tb|f_code|f_lineno|faulthandler|getframeinfo|getinnerframes|getouterframes"
    rb"|inspect\.stack|lineno|marshal|pstats|tb_lineno|tracemalloc|walk_stack|walk_tb|with_stack)\b"
)


def is_same_code(old: bytes, new: bytes) -> bool:
    """Whether two sources differ in comments and line breaks alone."""
    try:
        return _dump(old) == _dump(new)
    except _UNPARSABLE:
        return False


def shows_lines(source: bytes) -> bool:
    """Whether a program with this source may see line numbers of its code."""
    return _SHOW_LINES.search(source) is not None


def _dump(source: bytes) -> str:
    if len(source) > _MOST_BYTES:
        raise MemoryError
    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    if encoding not in _ENCODINGS:
        raise SyntaxError(encoding)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.dump(ast.parse(source.decode(encoding)))
