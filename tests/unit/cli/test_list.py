from click.testing import CliRunner

from ci_perf.cli import measuring_commands
from ci_perf.errors import ExitCode

SUITE = """
[[suites.smoke.workloads]]
workload = "plain"
[[suites.smoke.workloads]]
workload = "hostile"
parameters = { mode = "\\u001b[2J##[error]" }
"""


def test_foreign_text_commands_neither_terminal_nor_ci(tmp_path):
    (tmp_path / "suite.toml").write_text(SUITE)
    (tmp_path / "plain.py").write_text('"""A plain one."""')
    (tmp_path / "hostile.py").write_text(r'"""\x1b[31mred \r::error::boo ##[group]"""')

    done = CliRunner().invoke(measuring_commands.list_command, ["--workloads", str(tmp_path)])

    assert done.exit_code == ExitCode.OK
    plain, hostile = done.output.splitlines()
    assert plain.endswith("A plain one.")
    assert hostile.startswith("hostile")
    assert hostile.isprintable()
    assert "##[" not in hostile
