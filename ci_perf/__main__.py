"""`ci-perf`, and `python -m ci_perf`: handles signals before it imports the command line."""

import gc
import importlib.util
import sys

from ci_perf.errors import ExitCode
from ci_perf.system import signals

# What every command needs; a test compares them with pyproject.toml.
_PACKAGES = ("click", "jinja2", "msgspec", "rich")


def main() -> None:
    """Run the command line; without the packages that it needs, say so and exit."""
    signals.exit_at_once()
    # Documents have few cycles and many objects: looking for cycles takes a tenth of a comparison.
    gc.set_threshold(100_000)
    if missing := [name for name in _PACKAGES if importlib.util.find_spec(name) is None]:
        print(f"error: {_how_to_get(missing)}", file=sys.stderr)  # noqa: T201  click may be missing
        sys.exit(ExitCode.NO_ANSWER)  # a raw error would end with 1, as a regression does
    from ci_perf.cli.main import main as run

    run()


def _how_to_get(missing: list[str]) -> str:
    return (
        f"{sys.executable}: expected the packages that ci-perf needs, found no "
        f"{', '.join(missing)}; run `pip install .` in a checkout of ci_perf with this Python, or, "
        "without a network, `make wheels` elsewhere and PYTHONPATH=$PWD:$PWD/build/wheels in the "
        "checkout (docs/runner.md)"
    )


if __name__ == "__main__":
    main()
