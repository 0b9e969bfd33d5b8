"""What functions of the Python API take."""

from collections.abc import Callable
from os import PathLike

Location = str | PathLike[str]
Notify = Callable[[str], None]


def say_nothing(_text: str) -> None:
    """Tell nobody."""
