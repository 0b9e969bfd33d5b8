"""Which functions of the repository are executed, in all threads.

From Python 3.12 on sys.monitoring tells each function once. Before, a profiler tells every call, in
the threads that Python has started; a native thread it does not see.
"""

import dis
import sys
from types import CodeType

from ci_perf.measuring.recording.notes import Fact, Notes
from ci_perf.measuring.recording.places import Owner, Places

TOLD_ONCE = sys.version_info >= (3, 12)

_CO_OPTIMIZED = 0x1
# By the address of an object. Unlike id() it tells no audit event, which is slow to hear.
_identity = object.__hash__

# What shows a program its line numbers, or finds the text of a function by them.
_POSITIONS = {
    "co_firstlineno",
    "co_linetable",
    "co_lines",
    "co_lnotab",
    "co_positions",
    "currentframe",
    "extract_stack",
    "extract_tb",
    "f_lineno",
    "findsource",
    "getcomments",
    "getdoc",
    "getframeinfo",
    "getsource",
    "getsourcelines",
    "lineno",
    "tb_lineno",
    "walk_stack",
    "walk_tb",
}
_DOCSTRING = "__doc__"
_LOADS = {"LOAD_ATTR", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_METHOD", "LOAD_NAME"}
# These copy a docstring into another one, into a help text or into documentation; the standard
# library and torch do the same.
_COPY_DOCSTRINGS = {
    "PIL",
    "_pytest",
    "absl",
    "accelerate",
    "attr",
    "click",
    "datasets",
    "diffusers",
    "einops",
    "filelock",
    "fsspec",
    "google",
    "huggingface_hub",
    "jinja2",
    "joblib",
    "lightning",
    "matplotlib",
    "mpmath",
    "msgspec",
    "networkx",
    "numba",
    "numpy",
    "packaging",
    "pandas",
    "peft",
    "pkg_resources",
    "psutil",
    "pyarrow",
    "pydantic",
    "pynvml",
    "regex",
    "requests",
    "rich",
    "safetensors",
    "scipy",
    "setuptools",
    "sklearn",
    "six",
    "sympy",
    "timm",
    "tokenizers",
    "torch",
    "torchaudio",
    "torchgen",
    "torchmetrics",
    "torchvision",
    "tqdm",
    "transformers",
    "triton",
    "typer",
    "typing_extensions",
    "urllib3",
    "yaml",
}


def unit_name(code: CodeType) -> str:
    """Name the unit that a code object belongs to, as `program.units.digests` does.

    What is nested in a function belongs to it; lambdas and comprehensions beside functions belong
    to the body of their class or module.
    """
    outer: list[str] = []
    for part in code.co_qualname.split("."):
        if part == "<locals>":
            return ".".join(outer)
        if part.startswith("<"):
            return ".".join(outer) + ":"
        outer.append(part)
    return ".".join(outer) if code.co_flags & _CO_OPTIMIZED else ".".join(outer) + ":"


class Executed:
    """Notes each code object when it is first seen."""

    def __init__(self, notes: Notes, places: Places) -> None:
        self._notes = notes
        self._places = places
        # By identity, and kept, so that no other object gets the same: comparing code is slow.
        self._seen: dict[int, CodeType] = {}

    def note(self, code: CodeType) -> None:
        """Note what is executed, or may be because somebody holds its code."""
        if _identity(code) in self._seen:
            return
        self._seen[_identity(code)] = code
        file = code.co_filename
        if file.startswith("<"):
            return
        owner, name = self._places.classify(file)
        if owner is Owner.REPOSITORY:
            self._notes.add(Fact.UNIT, name, unit_name(code))
            if sight := _sight(code):
                self._notes.add(Fact.SIGHT, f"{name} uses `{sight}`")
        elif owner is Owner.INSTALLED and _DOCSTRING in code.co_names:
            package = _package(file)
            if package and package not in _COPY_DOCSTRINGS and _loads_docstring(code):
                self._notes.add(Fact.SIGHT, f"the package {package} uses `{_DOCSTRING}`")


def _sight(code: CodeType) -> str:
    """Name by what a function can see positions or docstrings; empty when by nothing."""
    texts = {text for constant in code.co_consts for text in _texts(constant)}
    names = {*code.co_names} | texts
    if used := sorted(_POSITIONS & names):
        return used[0]
    if "stack" in names and "inspect" in names:
        return "inspect.stack"
    if _DOCSTRING in texts or (_DOCSTRING in names and _loads_docstring(code)):
        return _DOCSTRING
    return ""


def _texts(constant: object) -> set[str]:
    if isinstance(constant, str):
        return {constant}
    if isinstance(constant, (tuple, frozenset)):
        return {item for item in constant if isinstance(item, str)}
    return set()


def _loads_docstring(code: CodeType) -> bool:
    """Whether it reads a docstring; the body of every class that has one stores it."""
    return any(
        step.argval == _DOCSTRING and step.opname in _LOADS for step in dis.get_instructions(code)
    )


def _package(file: str) -> str:
    """Name the installed package of a file; empty for the standard library and for ours."""
    for folder in ("/site-packages/", "/dist-packages/"):
        if folder in file:
            return file.rpartition(folder)[2].partition("/")[0].removesuffix(".py")
    return ""
