"""Folders with a suite.toml, and the plans that follow from it."""

import textwrap

from ci_perf import suite


def of(*names, where):
    """Write workload files of these names, which would raise when imported."""
    for name in names:
        (where / f"{name}.py").write_text(f'"""About {name}.\n\nMore."""\nraise SystemExit\n')
    return where


def plan(folder, text, name="smoke", **options):
    """Write suite.toml, and make the plan of one of its suites."""
    (folder / "suite.toml").write_text(textwrap.dedent(text))
    return suite.plan(folder, name, root=folder, **options)
