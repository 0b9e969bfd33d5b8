"""Whether two versions of a Python file are the same code, and what a program sees beyond code.

The sources may be a stranger's: they are parsed, never run, and bounded before they are parsed.
"""

import ast
import io
import re
import sys
import tokenize
import warnings

# The largest module of torch has 0.6 MiB; the tree of a source takes some hundred times its size.
_MOST_BYTES = 2**20
# Any other codec may be one that an installed package brings: it would be run.
_ENCODINGS = {"ascii", "iso-8859-1", "utf-8", "utf-8-sig"}
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_UNPARSABLE = (MemoryError, OverflowError, RecursionError, SyntaxError, SystemError, UnicodeError)

# What shows a program its line numbers, such as the format of a message.
_SHOW_LINES = re.compile(
    rb"\b(__code__|_current_frames|_getframe|catch_warnings\(record|co_firstlineno|co_linetable"
    rb"|co_lines|co_lnotab|co_positions|cProfile|cloudpickle|currentframe|dill|dis|extract_stack"
    rb"|extract_tb|f_code|f_lineno|faulthandler|getframeinfo|getinnerframes|getouterframes"
    rb"|inspect\.stack|lineno|marshal|pstats|tb_lineno|tracemalloc|walk_stack|walk_tb|with_stack)\b"
)
# What shows it its docstrings, in the language and in the standard library.
_SHOW_DOCSTRINGS = re.compile(
    rb"\b(__dict__|__doc__|cmd|co_consts|doctest|getdoc|getmembers|globals|help|pydoc|unittest|vars"
    rb"|xmlrpc)\b"
)
_IMPORT = re.compile(
    rb"(?:^|[:;])[ \t]*(?:from|import)[ \t]+(\w[\w, \t]*)"
    rb"|(?:import_module|__import__)\(\s*f?[\"'](\w+)",
    re.MULTILINE,
)
# Packages that show a program no docstring of its own. Any other may: in a schema or a help text.
_SHOW_NONE = {
    *("accelerate", "ci_perf", "datasets", "einops", "joblib", "numpy", "pandas", "PIL", "psutil"),
    *("pytest", "safetensors", "scipy", "sklearn", "tokenizers", "torch", "torchaudio"),
    *("torchmetrics", "torchvision", "tqdm", "transformers", "triton", "yaml"),
}


def is_same_code(old: bytes, new: bytes, *, docstrings: bool) -> bool:
    """Whether two sources differ in comments alone and, unless they count, in docstrings."""
    try:
        return _dump(old, docstrings=docstrings) == _dump(new, docstrings=docstrings)
    except _UNPARSABLE:
        return False


def shows_lines(source: bytes) -> bool:
    """Whether a program with this source may see line numbers of its code."""
    return _SHOW_LINES.search(source) is not None


def shows_docstrings(source: bytes, own: set[str]) -> bool:
    """Whether a program with this source may see its docstrings; `own` are modules that it has."""
    if _SHOW_DOCSTRINGS.search(source):
        return True
    imports = (statement or call for statement, call in _IMPORT.findall(source))
    known = own | _SHOW_NONE | sys.stdlib_module_names
    names = (each for match in imports for each in match.decode().split(","))
    return any((name.split() or [""])[0] not in known for name in names)


def _dump(source: bytes, *, docstrings: bool) -> str:
    if len(source) > _MOST_BYTES:
        raise MemoryError
    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    if encoding not in _ENCODINGS:
        raise SyntaxError(encoding)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = ast.parse(source.decode(encoding))
    for node in ast.walk(module):
        if isinstance(node, _DOCUMENTED) and not docstrings:
            first = node.body[0] if node.body else None
            value = first.value if isinstance(first, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                node.body = node.body[1:]
    return ast.dump(module)
