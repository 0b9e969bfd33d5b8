"""Digests that every Python must find: `make versions` runs this file in CPython 3.14, too."""

from ci_perf.program import units

# What the syntax trees of Python 3.11 to 3.14 have in different forms, or spell differently.
SOURCE = '''
import os
x = f"{a:}" f"{a!r:>{w}}" "b" f"{a=}" f"{ a = !s:>3}" f"" "" f"{{}}" f"{a:x{b}{c}y}"
y = (1, 1.0, 1j, True, None, ..., b"\\xff", "\\u0378\\U0001fae8\\ud800", 0xffffffffffffffff, 1e400)
u"kind"

class Net(Base, metaclass=Meta):
    """A network."""
    size: int = 1

    def forward(self, x, /, *, k=1, **more) -> "x":
        self.seen = {**more, 1: lambda: (yield)}
        match x:
            case None | {"k": 1, **rest}: return super().forward(x)
            case [*_]: return f"{x!r}{'nested'}{f'{1}'}"

async def later():
    """Wait."""
    async with a as b, c: pass
    try: pass
    except* E as e: pass
    return [j async for j in x]
'''


def test_digests_are_the_same_in_every_python():
    assert units.digests(SOURCE.encode()) == {
        ":": "551db6e57f9d0df5",
        "Net:": "6f47cdf2caed82f4",
        "later": "460eeb55caa9ea5a",
        "Net.forward": "d4d5827d924c3d0f",
    }
