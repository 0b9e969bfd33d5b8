"""Choose the command, and turn every way it can end into an exit code."""

import sys

import click

from ci_perf import hooks
from ci_perf.cli import console
from ci_perf.errors import CiPerfError, ExitCode
from ci_perf.system import linux, signals
from ci_perf.version import __version__

# What a command does stands here too, so that --help need not import it; a test compares the words.
_OF_CORE = {
    "init": "Write a suite and two workflows into this repository.",
    "list": "Show the workloads of a suite, without importing them.",
    "run": "Measure the workloads of a suite and write run.json.",
    "check": "Measure, compare with base and baselines, and report: the command for a CI.",
    "compare": "Judge one run against another, or against the committed baselines.",
    "github": "Report to a pull request, and answer its comments: for jobs of GitHub Actions.",
    "accept": "Make a run the new baseline, in files that you then commit.",
    "baseline": "Let git merge committed baselines by their sessions.",
    "demo": "Judge the pull request of a small example project.",
    "schema": "Write the JSON Schemas of the files that ci-perf reads and writes.",
}
COMMANDS = _OF_CORE | {name: each.does for name, each in hooks.find_commands().items()}
# What --help shows, and in which order; what features add comes last in each group.
_CORE_GROUPS = {
    "First week": ("init", "run", "check", "accept", "list"),
    "Every day": ("compare",),
    "CI and scale": ("github",),
}
# Of these, it shows the names alone.
HIDDEN = (
    *("baseline", "demo", "schema"),
    *(name for name, each in hooks.find_commands().items() if not each.shown),
)

# Each command NAME is `NAME_command` in the module of its subject, or in one of its own.
_SUBJECTS = {
    "suite_commands": ("init", "schema"),
    "measuring_commands": ("run", "check", "list"),
    "judging_commands": ("compare",),
    "baseline_commands": ("accept", "baseline"),
}
_MODULES = {name: module for module, names in _SUBJECTS.items() for name in names}


def group_commands() -> dict[str, dict[str, str]]:
    """Return the commands that --help shows, and what each does, by their groups."""
    groups = {title: {name: COMMANDS[name] for name in of} for title, of in _CORE_GROUPS.items()}
    for name, command in hooks.find_commands().items():
        if command.shown:
            groups[command.group][name] = command.does
    return groups


class _Commands(click.Group):
    """Imports a command only when it is called, so that `--help` stays quick."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return [name for names in group_commands().values() for name in names]

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        if cmd_name in _OF_CORE:
            name = f"{cmd_name}_command"
            target = f"ci_perf.cli.{_MODULES.get(cmd_name, name)}:{name}"
        else:
            target = hooks.find_commands()[cmd_name].target
        command: click.Command = hooks.load(target)
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for title, commands in group_commands().items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), does) for name, does in commands.items()])
        with formatter.section("More"):
            formatter.write_text(", ".join(sorted(HIDDEN)))


@click.command(
    cls=_Commands,
    context_settings={"auto_envvar_prefix": "CI_PERF", "help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="ci-perf")
def cli() -> None:
    """Find out if a pull request makes PyTorch workloads slower, on your own runner.

    Exit codes: 0 pass, 1 a proven regression, 2 wrong use or an invalid file, 3 no answer (a crash,
    a missing workload, another machine, or a likely regression without a proof), 130 interrupted.
    """


def main() -> None:
    """Run the command line; an error of ours must never look like a regression."""
    console.prepare()
    # A job may have given us its token. Measured code is not given it, and must not read it here.
    linux.forbid_inspection()
    signals.interrupt()
    try:
        code = _exit_code()
    except BaseException:  # noqa: BLE001  even the telling failed: exit code 1 is taken
        code = ExitCode.NO_ANSWER
    if failure := console.failure_of_stdout():
        console.say(f"error: stdout: cannot be written: {failure.strerror}")
        code = ExitCode.NO_ANSWER
    sys.exit(code)


def _exit_code() -> int:
    try:
        return int(cli(prog_name="ci-perf", standalone_mode=False) or ExitCode.OK)
    except CiPerfError as error:
        console.say_error(error)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return ExitCode.USAGE
    except (click.Abort, KeyboardInterrupt):
        console.say("interrupted")
        return ExitCode.INTERRUPTED
    except Exception:  # noqa: BLE001  a bug of ours: exit code 1 is taken
        import traceback

        console.say(traceback.format_exc())
        console.say("error: this is a bug in ci-perf, not in your change; please report it")
        return ExitCode.NO_ANSWER
