"""Who calls: the import system, what only asks whether a file exists, a part of a library."""

import os
from collections.abc import Container, Iterable
from pathlib import Path, PurePath
from types import FrameType

# The standard library, but not the packages that are installed below it, and this package.
_TRUSTED = (f"{Path(os.__file__).parent}/", f"{Path(__file__).parent}/")
_IMPORT = "<frozen importlib._bootstrap_external>"
_METADATA = ("importlib/metadata/__init__.py", "importlib_metadata/__init__.py")
# Their answer is yes or no, or a path: by module of the standard library and function.
_ASK_EXISTENCE = {
    "genericpath": {"exists", "isfile", "isdir", "lexists", "islink", "isjunction"},
    "posixpath": {"_joinrealpath", "realpath", "islink", "lexists", "isfile", "isdir"},
    "pathlib": {
        "exists",
        "is_dir",
        "is_file",
        "is_symlink",
        "resolve",
        "stat",
        "lstat",
        "samefile",
    },
    "linecache": {"checkcache", "updatecache"},
    "glob": {"_lexists"},
    "shutil": {"_access_check"},
}
_STAT = {"stat", "lstat"}
# Who asks these modules for lines, to show them to people.
_QUOTE = {
    "linecache": (
        "-packages/torch/_dynamo/symbolic_convert.py",
        "-packages/torch/_dynamo/utils.py",
    ),
    "traceback": ("-packages/torch/",),
}


def is_import(frame: FrameType) -> bool:
    """Whether the import system reads a module, or lists a folder to find one."""
    code = frame.f_code
    if code.co_filename != _IMPORT:
        return False
    if code.co_name == "get_data":
        # A program that reads a source by its loader calls get_data, or get_source.
        outer = frame.f_back
        return outer is not None and outer.f_code.co_name == "get_code"
    return True


def is_metadata(frame: FrameType) -> bool:
    """Whether the metadata of installed packages are looked for."""
    file = frame.f_code.co_filename
    return file.endswith(_METADATA) or "/pkg_resources/" in file


def is_of_recording(frame: FrameType) -> bool:
    """Whether the recording itself sets a profiler."""
    return _module(frame) == "executed"


def asks_existence(frame: FrameType | None) -> bool:
    """Whether what is asked of a file is no more than whether, and as what kind, it exists."""
    if frame is None:
        return False
    module = _module(frame)
    if module.startswith("importlib"):
        return True
    name = frame.f_code.co_name
    if module == "pathlib" and name in _STAT:
        outer = frame.f_back
        return outer is not None and _module(outer) == "pathlib" and asks_existence(outer)
    return name in _ASK_EXISTENCE.get(module, ())


def is_linecache(frame: FrameType) -> bool:
    """Whether linecache fills its cache for one of its own functions: `patched.Lines` sees whom."""
    outer = frame.f_back
    return (
        (_module(frame), frame.f_code.co_name) == ("tokenize", "open")
        and outer is not None
        and (_module(outer), outer.f_code.co_name) == ("linecache", "updatecache")
        and outer.f_back is not None
        and _module(outer.f_back) == "linecache"
    )


def quotes(frame: FrameType) -> bool:
    """Whether this caller of linecache only quotes lines: in a warning shown, or torch's messages.

    torch keeps stacks of the first use of CUDA, of the nodes of a graph and of what it compiles, as
    text for an error, a log or a comment in generated code. The lines of what is executed are in
    the record; what a comment beside them says changes no operation. All others may act on it.
    """
    inner: FrameType | None = frame
    last = ""
    while inner is not None and _module(inner) in {"linecache", "traceback"}:
        last, inner = _module(inner), inner.f_back
    if inner is None:
        return False
    if _module(inner) == "warnings":  # formatwarning alone would give the text to its caller
        return _is_below(inner, {"_showwarnmsg_impl", "warn_explicit"})
    file = inner.f_code.co_filename
    return any(part in file for part in _QUOTE.get(last, ()))


def _is_below(frame: FrameType, functions: Container[str]) -> bool:
    """Whether this frame or its near callers in the same module are one of these functions."""
    module = _module(frame)
    inner: FrameType | None = frame
    while inner is not None and _module(inner) == module:
        if inner.f_code.co_name in functions:
            return True
        inner = inner.f_back
    return False


def copies(frame: FrameType) -> bool:
    """Whether a mapping is gone through as a whole: its items, its values, a copy of it."""
    place = (_module(frame), frame.f_code.co_name)
    return place in {("_collections_abc", "__iter__"), ("os", "copy")}


def any_in(frame: FrameType | None, parts: Iterable[str]) -> bool:
    """Whether a caller's file, near or far, has one of these in its path."""
    while frame is not None:
        file = frame.f_code.co_filename
        if any(part in file for part in parts):
            return True
        frame = frame.f_back
    return False


def first_outside(frame: FrameType | None, modules: Iterable[str]) -> str:
    """Return the file of the nearest caller that is none of these modules."""
    passed = {*modules}
    while frame is not None and _module(frame) in passed:
        frame = frame.f_back
    return frame.f_code.co_filename if frame is not None else ""


def _module(frame: FrameType) -> str:
    """Name a module of the standard library, or of this package, by its file, frozen or not.

    Empty for any other file: a repository may have a threading.py of its own.
    """
    file = frame.f_code.co_filename
    if file.startswith("<frozen "):
        return file[len("<frozen ") : -1]
    if not file.startswith(_TRUSTED) or "-packages/" in file:
        return ""
    path = PurePath(file)
    return path.parent.name if path.name == "__init__.py" else path.stem
