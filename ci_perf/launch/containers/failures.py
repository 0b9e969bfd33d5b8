"""What an engine says when it refuses, in one sentence with the next step. Pure."""

from ci_perf.model.container import EngineName


def absent(engine: EngineName) -> str:
    """Say that the program of an engine is not there."""
    return (
        f"{engine}: expected its program on the PATH, found none; install it (docs/containers.md), "
        "or measure without a container: `--runner local`"
    )


def explained(engine: EngineName, stage: str, said: str) -> str:
    """Say why a command of the engine failed; `said` is what it wrote to stderr."""
    line = said.strip().splitlines()[-1] if said.strip() else "no words"
    return f"`{engine} {stage}` failed: {line}"
