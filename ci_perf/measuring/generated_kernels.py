"""The kernels that torch.compile has generated: by name and a digest of their source."""

import ast
import gc
import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from ci_perf.model.base import MAX_ABSENT_CHARS, MAX_SOURCE_CHARS
from ci_perf.model.process import GeneratedCode, GeneratedKernel

_DIGEST_CHARS = 16
_NAME_CHARS = 200
# Of all kernels of a launch: a result file holds 50 MiB.
_SOURCES_CHARS = 8_000_000
# Inductor numbers the kernels of a graph. One more of them changes all numbers after it.
_NUMBER = re.compile(r"_\d+$")
_CPP_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/[ \t]*", re.DOTALL)
# Inductor calls its files by a hash of their text in base 32, Triton calls its own in base 16.
_PLACE = re.compile(r"""(?<=["'])/[^"'\n]*|\bc[a-z2-7]{51}\b|\b[0-9a-f]{32,64}\b""")


def read_generated(*, keeps_sources: bool = False) -> GeneratedCode | None:
    """Read what this process has loaded of Inductor's cache; `None` where it compiled nothing."""
    inductor = sys.modules.get("torch._inductor.codecache")
    if inductor is None:
        return None
    try:
        files = dict.fromkeys(module.__file__ for module in inductor.PyCodeCache.modules)
        modules = [Path(file).read_text(encoding="utf-8") for file in files]
    except (AttributeError, OSError) as error:
        return GeneratedCode(absent=f"{type(error).__name__}: {error}"[:MAX_ABSENT_CHARS])
    if not modules:
        return None
    compiled = list_compiled(gc.get_objects())
    return GeneratedCode(kernels=list_kernels(modules, compiled, keeps_sources=keeps_sources))


Compiled = dict[str, tuple[int, int]]
"""The most registers and the sum of spills of all variants of a Triton kernel, by its name."""


def list_compiled(objects: Iterable[object]) -> Compiled:
    """Return what the driver said of the kernels that Triton has compiled.

    Triton keeps them as `CompiledKernel`. Inductor launches most of them without Triton, and then
    keeps `StaticallyLaunchedTritonKernel` alone, `StaticallyLaunchedCudaKernel` before torch 2.13.
    """
    compiled: Compiled = {}
    for each in objects:
        kind = type(each).__name__
        if kind == "CompiledKernel" or kind.startswith("StaticallyLaunched"):
            registers, spills = getattr(each, "n_regs", None), getattr(each, "n_spills", None)
            if isinstance(registers, int) and isinstance(spills, int):
                name = str(getattr(each, "name", ""))
                most, added = compiled.get(name, (0, 0))
                compiled[name] = max(most, registers), added + spills
    return compiled


def list_kernels(
    modules: Iterable[str], compiled: Compiled, *, keeps_sources: bool = False
) -> tuple[GeneratedKernel, ...]:
    """List the kernels in the text of modules that Inductor has written, each once, in order."""
    texts: dict[tuple[str, str], dict[str, str]] = {}
    for numbered, source in (pair for module in modules for pair in _find_sources(module)):
        text = _normalise(source.replace(numbered, "kernel"))
        digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARS]
        name = _NUMBER.sub("", numbered)[:_NAME_CHARS]
        texts.setdefault((name, digest), {})[numbered] = text
    kernels, left = [], _SOURCES_CHARS
    for (name, digest), by_number in texts.items():
        variants = [compiled[numbered] for numbered in by_number if numbered in compiled]
        text = next(iter(by_number.values())) if keeps_sources else ""
        if len(text) > min(left, MAX_SOURCE_CHARS):
            text = f"{digest}: {len(text):,} characters, too many to keep\n"
        left -= len(text)
        registers = max((most for most, _ in variants), default=None)
        spills = sum(spills for _, spills in variants) if variants else None
        kernels.append(
            GeneratedKernel(
                name=name, digest=digest, registers=registers, spills=spills, source=text
            )
        )
    return tuple(kernels)


def _find_sources(module: str) -> Iterator[tuple[str, str]]:
    """Yield name and source: `NAME = async_compile.triton("NAME", '''SOURCE''', …)`."""
    for statement in ast.parse(module).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            for node in ast.walk(statement.value):
                match node:
                    case ast.Constant(value=str(source)) if "\n" in source:
                        yield statement.targets[0].id, source


def _normalise(source: str) -> str:
    """Leave out comments, docstrings, paths and hashes, which may differ for the same code."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # C++
        lines = map(str.rstrip, _CPP_COMMENT.sub("", source).splitlines())
        return _PLACE.sub("", "\n".join(filter(None, lines)) + "\n")
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return _PLACE.sub("", ast.unparse(tree) + "\n")
