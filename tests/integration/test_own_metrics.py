"""Metrics of the user's own that a workload returns or a command writes, from a real process."""

import json
from pathlib import Path

from ci_perf.launch.local import LocalLauncher
from ci_perf.measuring import command
from tests.launches import HEAD, a_task, failure_of, result_of

SOURCE = (
    HEAD
    + """
steps = []
def step():
    steps.append(1)
def build(context):
    return Workload(step=step, metrics=lambda: {})
"""
)


def test_a_workload_returns_metrics_of_its_own_after_its_steps(task, tmp_path):
    numbers = "{'rate.tokens': 1e6, 'count.few': len(steps) < 3, 'score.f1': 0.123456789}"

    outcome = LocalLauncher(tmp_path).launch(task("it", SOURCE.format(numbers)))

    assert result_of(outcome).process.metrics == {
        "rate.tokens": 1e6,
        "count.few": 0.0,
        "score.f1": 0.123457,
    }


def test_a_number_that_says_nothing_fails_the_launch(task, tmp_path):
    source = SOURCE.format("{'rate.tokens': 0.0}")

    failure = failure_of(LocalLauncher(tmp_path).launch(task("it", source)))

    assert failure.reason.startswith("ValueError: rate.tokens: expected a number above 0")


def test_a_name_that_no_file_can_have_is_told(task, tmp_path):
    source = SOURCE.format("{'rate.' + 'x' * 300: 1.0}")

    failure = failure_of(LocalLauncher(tmp_path).launch(task("it", source)))

    said = "ValueError: expected a name of at most 194 characters, found 300 in 'xxxx"
    assert failure.reason.startswith(said)


def read_hyperfine(root, text):
    """Launch a command that writes this file, as hyperfine does."""
    (root / "written").write_text(text)
    parameters = {"command": f"cp {root}/written {{output}}", "reads": "hyperfine"}
    it = a_task(Path(command.__file__), root=root, workload={"parameters": parameters})
    return LocalLauncher(root).launch(it)


def test_the_command_lines_of_hyperfine_may_be_long(tmp_path):
    lines = [f"bench {'--with-a-long-option ' * 12}{end}" for end in "ab"]
    results = [{"command": line, "times": [0.5]} for line in lines]

    outcome = read_hyperfine(tmp_path, json.dumps({"results": results}))

    names = result_of(outcome).process.metrics
    assert len(names) == 2
    assert all(name.startswith("time.bench_--with-a-long-option_") for name in names)


def test_a_key_that_is_in_a_file_twice_fails_the_launch(tmp_path):
    text = '{"results": [{"command": "a", "times": [9.0], "times": [0.5]}]}'

    failure = failure_of(read_hyperfine(tmp_path, text))

    said = "{output}, read as hyperfine: expected each key once, found 'times' twice"
    assert said in failure.reason
