"""Who calls: the import system, what only asks whether a file exists, a part of a library."""

import os
from pathlib import Path, PurePath
from types import FrameType

from ci_perf.measuring.module_files import OURS

_WORKER = f"{OURS}/measuring/"
# The standard library, but not the packages that are installed below it.
_STDLIB = f"{Path(os.__file__).parent}/"
_IMPORT = "<frozen importlib._bootstrap_external>"
_METADATA = ("importlib/metadata/__init__.py", "importlib_metadata/__init__.py")
# What these functions of the standard library learn of a file is whether, and as what, it exists.
_ASK_EXISTENCE = {
    *("_access_check", "_joinrealpath", "_lexists", "checkcache", "exists", "is_dir", "is_file"),
    *("is_junction", "is_symlink", "isdir", "isfile", "isjunction", "islink", "lexists"),
    *("realpath", "resolve", "samefile", "updatecache"),
}
# Who asks for lines to show them to people, by what they call: torch keeps them for messages, logs
# and comments in generated code.
_QUOTERS = {
    "linecache": (
        "-packages/torch/_dynamo/symbolic_convert.py",
        "-packages/torch/_dynamo/utils.py",
    ),
    "tokenize": ("-packages/torch/_dynamo/funcname_cache.py",),
    "traceback": ("-packages/torch/",),
}


def is_import(frame: FrameType | None) -> bool:
    """Whether the import system reads a module, or looks for one."""
    if frame is None or frame.f_code.co_filename != _IMPORT:
        return False
    if frame.f_code.co_name == "get_data":  # a program may ask a loader for a source
        return frame.f_back is not None and frame.f_back.f_code.co_name == "get_code"
    return True


def is_metadata(frame: FrameType) -> bool:
    """Whether the metadata of installed packages are looked for."""
    file = frame.f_code.co_filename
    return file.endswith(_METADATA) or "/pkg_resources/" in file


def asks_existence(frame: FrameType | None) -> bool:
    """Whether the standard library asks on behalf of a function that tells existence alone."""
    while frame is not None and find_module(frame):
        if frame.f_code.co_name in _ASK_EXISTENCE:
            return True
        frame = frame.f_back
    return False


def is_our_own(frame: FrameType | None) -> bool:
    """Whether the worker itself opens a file, by the standard library or not."""
    while frame is not None and find_module(frame):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(_WORKER)


def is_linecache(frame: FrameType | None) -> bool:
    """Whether linecache reads a source: who asks it for lines is noted by itself."""
    outer = frame.f_back if frame else None
    return outer is not None and find_module(outer) == "linecache"


def quotes(frame: FrameType | None) -> bool:
    """Whether this caller of linecache only quotes lines: a warning, or a message of torch."""
    called = ""
    while frame is not None and (module := find_module(frame)) in _QUOTERS:
        called, frame = module, frame.f_back
    while frame is not None and find_module(frame) == "warnings":
        if frame.f_code.co_name in {"_showwarnmsg_impl", "warn_explicit"}:
            return True  # `formatwarning` alone would give the text to its caller
        frame = frame.f_back
    file = frame.f_code.co_filename if frame else ""
    return any(part in file for part in _QUOTERS.get(called, ()))


def has_caller(frame: FrameType | None, parts: tuple[str, ...]) -> bool:
    """Whether a caller's file, near or far, has one of these in its path."""
    while frame is not None:
        if any(part in frame.f_code.co_filename for part in parts):
            return True
        frame = frame.f_back
    return False


def find_module(frame: FrameType) -> str:
    """Name a module of the standard library by its file, frozen or not; empty for any other."""
    file = frame.f_code.co_filename
    if file.startswith("<frozen "):
        return file[len("<frozen ") : -1]
    if not file.startswith(_STDLIB) or "-packages/" in file:
        return ""
    path = PurePath(file)
    return path.parent.name if path.name == "__init__.py" else path.stem
