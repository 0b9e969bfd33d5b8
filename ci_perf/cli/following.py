"""How a person follows what is measured: on stderr."""

import functools
import os
import sys

import click

from ci_perf import progress
from ci_perf.cli import console
from ci_perf.session import Listener


def listener() -> Listener:
    """Return what shows on stderr that a run goes on."""
    obeyed = functools.partial(click.echo, err=True)  # whatever its runner is given on stderr
    is_on_github = os.environ.get("GITHUB_ACTIONS") == "true"
    return progress.listener(sys.stderr, say=console.say, command=obeyed if is_on_github else None)
