"""Learn when functions of the repository begin and end, while all else runs as if unwatched.

A hook of the interpreter is called for every call: in a function that calls many others, built-in
or of libraries, it takes longer than they do. So the code of each function of the repository is
replaced by one of the same signature, which notes the begin, calls what was there, and notes the
end. What has no such code (a coroutine, a generator that was under way before) is not told of.
"""

import contextlib
import gc
import os
import threading
from collections.abc import Callable, Generator, Iterator
from functools import partial
from inspect import (
    CO_ASYNC_GENERATOR,
    CO_COROUTINE,
    CO_GENERATOR,
    CO_OPTIMIZED,
    CO_VARARGS,
    CO_VARKEYWORDS,
)
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple
from weakref import WeakSet

from ci_perf.measuring.profiling.origins import AuthorCode
from ci_perf.model.step_profile import AuthorFunction

_ASYNCHRONOUS: Final = CO_COROUTINE | CO_ASYNC_GENERATOR
# Constants of the text that are replaced by what shall be called.
_ENTER: Final = "ci-perf enters"
_LEAVE: Final = "ci-perf leaves"
_TEXT: Final = """
def around({free}):
    def wrapper({parameters}):
        def ci_perf_inner():
            return ({free})
        {calls}
"""
_CALLS: Final = f"""
        enter = {_ENTER!r}
        leave = {_LEAVE!r}
        enter()
        try:
            return ci_perf_inner({{arguments}})
        finally:
            leave()
"""
_RESUMES: Final = f"""
        resumed = {_ENTER!r}
        return (yield from resumed(ci_perf_inner({{arguments}})))
"""


class _Wrapper(NamedTuple):
    """The code that replaces another one, if it can be; both stay alive: they are known by id."""

    before: CodeType
    code: CodeType | None


class Boundaries:
    """Tells when functions of the repository begin and end in the thread that made it."""

    def __init__(self, code: AuthorCode) -> None:
        """`code` knows the repository's functions."""
        self.entered: set[AuthorFunction] = set()
        self._code = code
        self._thread = threading.get_ident()
        self._made: dict[int, _Wrapper] = {}
        self._before: dict[int, CodeType] = {}
        self._told: tuple[Callable[[AuthorFunction], object], Callable[[], object]] | None = None
        _every.add(self)

    @contextlib.contextmanager
    def wrapped(self) -> Iterator[None]:
        """Within, all functions of the repository are wrapped, also those that are made there."""
        try:
            for function in _functions():
                if self._code.function(function.__code__) and (
                    code := self._wrapper(function.__code__)
                ):
                    function.__code__ = code
            yield
        finally:
            for function in _functions():
                if before := self._before.get(id(function.__code__)):
                    function.__code__ = before

    @contextlib.contextmanager
    def told(
        self, enter: Callable[[AuthorFunction], object], leave: Callable[[], object]
    ) -> Iterator[None]:
        """Within, call these; a generator enters each time it goes on."""
        self._told = enter, leave
        try:
            yield
        finally:
            self.end()

    def end(self) -> None:
        """Call nothing any more."""
        self._told = None

    def wrap(self, function: Callable[[], None]) -> Callable[[], None]:
        """Return a function of ours, wrapped as those of the repository are."""
        code = function.__code__
        ours = AuthorFunction(file="wrappers.py", function=function.__qualname__, line=0)
        callables = {_ENTER: partial(self._enter, ours), _LEAVE: self._leave}
        return FunctionType(_wrapper_of(code, code, callables) or code, {})

    def _enter(self, function: AuthorFunction) -> None:
        if self._told and threading.get_ident() == self._thread:
            self.entered.add(function)
            self._told[0](function)

    def _leave(self) -> None:
        if self._told and threading.get_ident() == self._thread:
            self._told[1]()

    def _wrapper(self, code: CodeType) -> CodeType | None:
        """Return the code that replaces one; `None` where it stays as it is."""
        if id(code) in self._before:
            return None
        if id(code) not in self._made:
            self._made[id(code)] = _Wrapper(code, self._new(code))
        return self._made[id(code)].code

    def _new(self, code: CodeType) -> CodeType | None:
        function, inner = self._code.function(code), self._with_wrapped_within(code)
        wrapper = None
        if function is not None and not code.co_flags & _ASYNCHRONOUS:
            enter: Callable[..., object] = partial(self._enter, function)
            if code.co_flags & CO_GENERATOR:
                enter = partial(_Resumed, enter, self._leave)
            wrapper = _wrapper_of(code, inner, {_ENTER: enter, _LEAVE: self._leave})
        replaced = wrapper or (inner if inner is not code else None)
        if replaced is not None:
            self._before[id(replaced)] = code
        return replaced

    def _with_wrapped_within(self, code: CodeType) -> CodeType:
        """Wrap the functions that this code makes when it runs."""
        constants = tuple(
            (self._wrapper(each) or each) if isinstance(each, CodeType) else each
            for each in code.co_consts
        )
        is_same = all(a is b for a, b in zip(constants, code.co_consts, strict=True))
        return code if is_same else code.replace(co_consts=constants)


_every: WeakSet[Boundaries] = WeakSet()


def _end_all() -> None:
    """Leave workers alone that this process forks, such as those of a DataLoader."""
    for boundaries in _every:
        boundaries.end()


os.register_at_fork(after_in_child=_end_all)


class _Resumed:
    """A generator that tells when it goes on and when it yields; for `yield from`."""

    __slots__ = ("_enter", "_generator", "_leave")

    def __init__(
        self,
        enter: Callable[[], object],
        leave: Callable[[], object],
        generator: Generator[Any, Any, Any],
    ) -> None:
        self._enter, self._leave, self._generator = enter, leave, generator

    def __iter__(self) -> "_Resumed":
        return self

    def __next__(self) -> Any:  # noqa: ANN401  what the program yields
        return self._during(self._generator.__next__)

    def send(self, value: object) -> Any:  # noqa: ANN401  what the program yields
        return self._during(self._generator.send, value)

    def throw(self, *error: Any) -> Any:  # noqa: ANN401  what the program yields
        return self._during(self._generator.throw, *error)

    def close(self) -> None:
        self._during(self._generator.close)

    def _during(self, goes_on: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401
        self._enter()
        try:
            return goes_on(*arguments)
        finally:
            self._leave()


def _functions() -> Iterator[FunctionType]:
    return (each for each in gc.get_objects() if type(each) is FunctionType)


def _wrapper_of(code: CodeType, inner: CodeType, callables: dict[str, object]) -> CodeType | None:
    """Return a code of the same signature and free variables, which calls `inner`.

    `None` for the body of a class, and for what the compiler itself has named.
    """
    is_generator = code.co_flags & CO_GENERATOR
    parameters, arguments, names = _signature(code)
    if not code.co_flags & CO_OPTIMIZED or not all(map(str.isidentifier, names)):
        return None
    free = "".join(f"{name}, " for name in code.co_freevars)
    calls = (_RESUMES if is_generator else _CALLS).format(arguments=arguments)
    text = _TEXT.format(free=free, parameters=parameters, calls=calls)
    around = _constant(compile(text, code.co_filename, "exec"), "around")
    wrapper = _constant(around, "wrapper")
    hole = _constant(wrapper, "ci_perf_inner")
    if not wrapper.co_freevars == hole.co_freevars == code.co_freevars:
        return None
    return wrapper.replace(
        co_consts=tuple(
            inner if each is hole else callables.get(each, each) if type(each) is str else each
            for each in wrapper.co_consts
        ),
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_firstlineno=code.co_firstlineno,
    )


def _constant(code: CodeType, name: str) -> CodeType:
    codes = (each for each in code.co_consts if isinstance(each, CodeType))
    return next(each for each in codes if each.co_name == name)


def _signature(code: CodeType) -> tuple[str, str, list[str]]:
    """Return the parameters of a function, what passes them on, and all its outer names."""
    names = list(code.co_varnames)
    positional = names[: code.co_argcount]
    by_name = names[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    rest = names[code.co_argcount + code.co_kwonlyargcount :]
    several = [f"*{rest.pop(0)}"] if code.co_flags & CO_VARARGS else []
    named = [f"**{rest.pop(0)}"] if code.co_flags & CO_VARKEYWORDS else []
    count = code.co_posonlyargcount
    only = [*positional[:count], "/"] if count else []
    mark = several or (["*"] if by_name else [])
    parameters = [*only, *positional[count:], *mark, *by_name, *named]
    arguments = [*positional, *several, *(f"{name}={name}" for name in by_name), *named]
    outer = [*positional, *by_name, *(each.lstrip("*") for each in (*several, *named))]
    return ", ".join(parameters), ", ".join(arguments), [*outer, *code.co_freevars]
