"""`ci-perf doctor`: what this machine is, and why CUDA is not available when it is not."""

import dataclasses
import sys
from pathlib import Path

import click
import msgspec

from ci_perf import hooks, suite
from ci_perf.cli import console, measure_options, options
from ci_perf.errors import UsageError
from ci_perf.features.doctor import machine_facts, rehearsals, text
from ci_perf.features.doctor.deep import check_machine
from ci_perf.features.doctor.diagnosis import diagnose
from ci_perf.gate import runners
from ci_perf.model import codec
from ci_perf.model.run import Tool
from ci_perf.progress import PlainListener
from ci_perf.system import files
from ci_perf.version import __version__


@click.command
@click.option(
    "--runner",
    type=click.Choice(runners.find_kinds()),
    default="local",
    show_default=True,
    help="Where to measure: in processes of this machine, or in containers.",
)
@click.option(
    "--image",
    metavar="NAME@sha256:DIGEST",
    help="The image to test. By default that of [container] in suite.toml.",
)
@options.workloads
@options.baselines
@click.option(
    "--json",
    is_flag=True,
    help="Print facts and findings as JSON, for a program or a bug report.",
)
@click.option(
    "--deep",
    is_flag=True,
    help="Also test for up to a minute if clocks, waits and memory can be trusted, and if other "
    "programs are noticed.",
)
@measure_options.option("wait_s")
def doctor_command(
    *,
    runner: str,
    image: str | None,
    workloads: Path,
    baselines: Path,
    json: bool,
    deep: bool,
    wait: float | None,
) -> int:
    """Describe this machine, and say why CUDA is missing.

    Each finding names the next step. On a GPU, torch runs one kernel, with some hundred MiB of its
    memory. With --runner docker or podman, this is the torch of the image, in a container. With
    --deep, each check is passed, failed or skipped, with its figures or the reason.

    Exit codes: 0 CPU or GPU workloads can be measured, 3 they cannot (torch is missing or broken,
    or no container of this image starts), or a check of --deep failed.
    """
    if deep and runner != "local":
        raise UsageError(f"--deep: expected --runner local, found {runner}; run it in the image")
    sources = machine_facts.this_machine()
    if runner == "local":
        if image is not None:
            raise UsageError("--image: expected --runner docker or podman beside it, found local")
        facts = machine_facts.gather(sources)
    else:
        checkout = files.current_folder()
        tried, torch = hooks.load(hooks.find_launchers()[runner].examine)(
            runner,
            image,
            workloads=workloads,
            checkout=checkout,
            environ=sources.environ,
            has_gpus=machine_facts.has_gpu_nodes(sources),
        )
        in_image = dataclasses.replace(sources, torch=lambda: torch)
        facts = machine_facts.gather(in_image, containers=tried)
    of_gate = []
    if suite.exists(workloads):
        of_gate.append(rehearsals.explain(facts, rehearsals.read_all(baselines, console.say)))
    diagnosis = diagnose(facts, Tool(version=__version__), of_gate)
    if deep:
        from ci_perf.gate.options import find_lock_timeout_s

        checks = check_machine(
            facts.torch,
            files.current_folder(),
            lock_timeout_s=find_lock_timeout_s(wait),
            waiting=PlainListener(console.say).waiting,
        )
        diagnosis = msgspec.structs.replace(diagnosis, deep=checks)
    if json:
        console.emit(codec.encode(diagnosis), output=None)
    else:
        console.emit(text.render(diagnosis, colour=sys.stdout.isatty()), output=None)
    return diagnosis.exit_code
