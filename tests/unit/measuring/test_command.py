"""Programs as steps: what they print, and the blocks that are made of it."""

import json
import os
import shlex
import signal
import sys
from typing import Any

import pytest

from ci_perf.measuring import command, timing
from ci_perf.measuring.device import Device, ReportedSteps
from ci_perf.measuring.own_metrics import OwnMetrics
from ci_perf.model.suite import Protocol, parse_metric
from ci_perf.workload import Context
from tests.processes import run_python


def program(source, metric="t_ms=took ([0-9.]+)", skip=0):
    return command.RepeatedCommand([sys.executable, "-c", source], metric, skip)


def test_the_times_that_a_program_prints_are_seconds_without_the_first():
    run = program("print('took 5\\nother\\nit took 7.5 and more\\ntook 9')", skip=1)

    run.run()

    assert run.find_step_times() == pytest.approx([0.0075, 0.009])


@pytest.mark.parametrize(("words", "asked"), [("true", ""), ("echo {port}", "socket.bind\n")])
def test_a_port_is_asked_for_only_if_it_is_named(words, asked):
    code = f"""
import sys
from ci_perf.measuring import command
from ci_perf.workload import Context
from tests.processes import run_python
sys.addaudithook(lambda event, _: event == "socket.bind" and print(event))
parameters = {{"command": {words!r}}}
command.build(Context(device="cpu", seed=0, data_dir="", parameters=parameters))
"""
    done = run_python("-c", code)

    assert (done.stdout, done.stderr) == (asked, "")


def test_what_a_program_leaves_behind_is_not_waited_for():
    left = "import subprocess; print('took', subprocess.Popen(['sleep', '600']).pid)"
    run = program(left, "pid_s=took ([0-9]+)")

    run.run()

    (pid,) = map(int, run.find_step_times())
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("unit", "seconds"), [("step_s", 2.0), ("a_step_ms", 2e-3), ("x_us", 2e-6)]
)
def test_the_name_of_a_metric_ends_in_its_unit(unit, seconds):
    _, unit_s = parse_metric(f"{unit}=(.)")

    assert 2 * unit_s == pytest.approx(seconds)


def test_a_block_is_the_median_of_what_its_programs_have_reported():
    reports = iter([[1.0, 5.0], [2.0]])
    runs = []
    device = ReportedSteps(lambda: next(reports))

    block = device.time_block(lambda: runs.append(1), 2)

    assert (block.step_s, block.steps_s, len(runs)) == (2.0, (1.0, 5.0, 2.0), 2)


def test_a_program_of_its_own_is_run_once_for_each_block():
    runs = []
    protocol = Protocol(block_min_s=0.0, timed_min_blocks=1, timed_min_s=0.0, timed_max_s=0.0)

    timed = timing.time_blocks(
        Device(), lambda: runs.append(1), protocol, step_s=1.0, start_s=1.0, is_fresh=True
    )

    assert len(timed.block_s) == len(runs) == 1


@pytest.mark.parametrize("time", ["0.0", "1,5", "nan", "-3", "inf"])
def test_what_is_no_time_fails_the_launch_with_its_line(time):
    run = program(f"print('took 7; took {time}')", "t_ms=; took (.*)")

    with pytest.raises(RuntimeError, match=f"expected a time above 0, found '{time}' in 'took 7"):
        run.run()


def test_a_command_names_values_of_its_matrix_a_port_and_nothing_else():
    source = "import sys; print('rate', *sys.argv[1:])"
    words = f'{sys.executable} -c "{source}" {{rate}} {{port}} {{skip}} {{other}}'
    parameters: dict[str, str | int] = {
        "command": words,
        "rate": 4,
        "require": r"^rate 4 [0-9]+ \{skip\} \{other\}$",
    }
    context = Context(device="cpu", parameters=parameters, seed=0, data_dir="")

    command.build(context).step()


@pytest.mark.parametrize(("launch", "times_s"), [(0, 0.002), (1, 0.001)])
def test_a_run_before_the_first_launch_is_not_counted(tmp_path, launch, times_s):
    """The program counts its runs, and prints how many there were."""
    count = (
        f"file = open({str(tmp_path / 'runs')!r}, 'a'); file.write('x'); "
        "print('took', file.tell(), 'ms')"
    )
    parameters = {
        "command": shlex.join([sys.executable, "-c", count]),
        "reads": "regex",
        "metrics": json.dumps({"a_ms": {"kind": "time", "find": "took (.) ms"}}),
    }
    context = Context(device="cpu", parameters=parameters, seed=0, data_dir="", launch=launch)
    workload = command.build(context)

    workload.step()

    assert workload.metrics
    assert workload.metrics() == {"time.a_ms": pytest.approx(times_s)}


def test_a_command_that_leaves_no_file_has_failed():
    program = command.RepeatedCommand(["echo", "{output}"])

    with pytest.raises(RuntimeError, match=r"expected a file at \{output\}, found none"):
        program.run()


def test_what_a_command_writes_counts_as_printed():
    write = "import sys; open(sys.argv[1], 'w').write('step 12ms')"
    program = command.RepeatedCommand(
        [sys.executable, "-c", write, "{output}"], "step_ms=step ([0-9]+)ms"
    )

    program.run()

    assert program.find_step_times() == [0.012]


def test_a_run_without_what_is_required_has_failed():
    program = command.RepeatedCommand(["echo", "9 requests failed"], require="^0 requests failed")

    with pytest.raises(
        RuntimeError, match=r"expected a line with '\^0 requests failed', found none"
    ):
        program.run()


def test_what_a_program_records_is_a_metric_of_the_launch():
    source = "import ci_perf; ci_perf.record({'time.ttft': 0.2, 'count.calls': %d})"
    run = program(f"{source % 7}\n{source % 9}", metric="")

    run.run()
    run.run()

    assert run.find_step_times() == []
    assert run.find_metrics() == {"time.ttft": 0.2, "count.calls": 9.0}


@pytest.mark.parametrize("text", ["metric", "require", "reads"])
def test_a_pattern_that_never_ends_is_told(text):
    pattern = "^((?:a+)+)$"
    own = {"a": {"kind": "time", "find": pattern}}
    parts: dict[str, dict[str, Any]] = {
        "metric": {"metric": f"t_ms={pattern}"},
        "require": {"require": pattern},
        "reads": {"own": OwnMetrics("regex", json.dumps(own))},
    }
    program = command.RepeatedCommand(["echo", 40 * "a" + "!"], **parts[text], matching_s=1)

    with pytest.raises(RuntimeError, match=r"matched within 1 s of CPU time, found no end"):
        program.run()


def test_a_line_that_never_ends_is_read_in_parts():
    run = program("import sys; sys.stdout.write(3 * 2**20 * 'x' + ' took 7')")

    run.run()

    assert run.find_step_times() == [0.007]


def test_two_processes_that_report_are_refused():
    record = shlex.join([sys.executable, "-c", "import ci_perf; ci_perf.record({'count.a': 1})"])
    program = command.RepeatedCommand(["sh", "-c", f"{record}; {record}"])

    with pytest.raises(RuntimeError, match=r"expected one process with ci_perf.steps"):
        program.run()
