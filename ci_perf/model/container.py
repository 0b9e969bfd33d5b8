"""The container in which a suite is measured: what is asked for, and what it was."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from ci_perf.model.base import CPU_LIST, CpuList, Struct, Text

EngineName = Literal["docker", "podman"]
# As the engines spell it: a whole number and a binary unit.
_SIZE = r"^[1-9][0-9]{0,6}[kmg](?!\n)$"
_SIZE_OR_EMPTY = r"^([1-9][0-9]{0,6}[kmg])?(?!\n)$"
Size = Annotated[str, msgspec.Meta(max_length=10, pattern=_SIZE)]
SizeOrEmpty = Annotated[str, msgspec.Meta(max_length=10, pattern=_SIZE_OR_EMPTY)]
# What a pattern asks for, for people: nobody reads the pattern itself.
IN_WORDS: Mapping[str, str] = {
    _SIZE: "a size such as 32g or 512m",
    _SIZE_OR_EMPTY: "a size such as 32g or 512m",
    CPU_LIST: "numbers of cores, such as 0-3,8",
}
# What an image is called: NAME, NAME:TAG, NAME@sha256:DIGEST, or sha256:CONFIG.
Reference = Annotated[str, msgspec.Meta(max_length=400)]


class Container(Struct, frozen=True, kw_only=True):
    """The table [container] of suite.toml: in which image, and with how much of the machine.

    Nothing here opens a door: mounts, GPUs and the engine are chosen by whoever starts ci-perf.
    ``memory`` empty is without a limit; ``cpus`` empty is all of them.
    """

    image: Reference = ""
    memory: SizeOrEmpty = ""
    shm_size: Size = "8g"
    tmp_size: Size = "8g"
    pids: Annotated[int, msgspec.Meta(ge=16, le=4_194_304)] = 4096
    cpus: CpuList = ""


class Image(Struct, frozen=True, kw_only=True):
    """The image that was measured in.

    ``reference`` is how it was asked for, ``digest`` that of its registry ("sha256:...", empty for
    one that was never pushed), ``config`` that of its configuration, which every engine knows.
    ``inputs`` is the hash of what it was built from, where its label says so. ``is_pinned`` says
    that the reference can mean no other image.
    """

    reference: Reference
    digest: Text
    config: Text
    inputs: Text
    is_pinned: bool
    engine: EngineName
    engine_version: Text
