"""`ci-perf doctor`: what this machine is, and why CUDA is not available when it is not."""

import sys

import click

from ci_perf.cli import doctor_text, output
from ci_perf.measure import diagnosis, machine_facts
from ci_perf.model import codec
from ci_perf.model.run import Tool
from ci_perf.version import __version__


@click.command
@click.option(
    "--json",
    is_flag=True,
    help="Print facts and findings as JSON, for a program or an issue report.",
)
def command(*, json: bool) -> int:
    """Say what this machine is, and why CUDA is not available when it is not.

    Each finding names the next step. On a GPU, torch is asked to run one kernel: on a busy GPU that
    takes some hundred MiB for a moment.

    Exit codes: 0 CPU or GPU workloads can be measured, 3 nothing can be measured (torch is
    missing or broken).
    """
    facts = machine_facts.gather(machine_facts.this_machine())
    found = diagnosis.diagnose(facts, Tool(version=__version__))
    if json:
        output.emit(codec.encode(found), output=None)
    else:
        output.emit(doctor_text.render(found, colour=sys.stdout.isatty()), output=None)
    return found.exit_code
