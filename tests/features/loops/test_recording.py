"""`ci_perf.steps` and `ci_perf.record`: nothing outside of a check, a report within one."""

import os
import subprocess
import sys

import pytest

import ci_perf
from ci_perf.model.step_report import REPORT_VARIABLE, StepReport
from ci_perf.system import files

PROGRAM = """
import time
import ci_perf
done = []
for epoch in range({epochs}):
    for batch in ci_perf.steps(range({batches}), warmup=2, steps=5, items=8):
        {body}
        done.append(batch)
print(len(done))
"""


def run(tmp_path, body="pass", *, epochs=1, batches=100, program=PROGRAM, **environment):
    """Run a program with a loop; return how it ended, and its report."""
    file = tmp_path / "report.json"
    done = subprocess.run(
        [sys.executable, "-c", program.format(body=body, epochs=epochs, batches=batches)],
        env={**os.environ, REPORT_VARIABLE: str(file), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done, files.read(file, StepReport) if file.exists() else None


def test_the_loop_ends_once_its_steps_are_timed(tmp_path):
    done, report = run(tmp_path, "time.sleep(0.01)")

    assert done.stdout == "7\n", done.stderr
    assert (report.asked, report.ended, report.items_per_step) == (7, 7, 8.0)
    assert len(report.steps_s) == 5
    assert min(report.steps_s) >= 0.01
    assert (report.device_memory, report.compiles) == (None, None)


def test_outside_of_a_check_the_batches_themselves_are_returned(monkeypatch):
    monkeypatch.delenv(REPORT_VARIABLE, raising=False)
    batches = [1, 2, 3]

    assert ci_perf.steps(batches, warmup=1, steps=1) is batches
    ci_perf.record(loss=1.0)


def test_epochs_are_one_loop_and_what_lies_between_them_is_no_step(tmp_path):
    program = PROGRAM.replace("for batch in", "time.sleep(0.3)\n    for batch in")

    done, report = run(tmp_path, "pass", epochs=10, batches=3, program=program)

    assert done.stdout == "7\n", done.stderr
    assert report.ended == 7
    assert len(report.steps_s) == 5
    assert max(report.steps_s) < 0.3


def test_a_loop_that_ends_before_says_how_far_it_came(tmp_path):
    done, report = run(tmp_path, batches=4)

    assert done.stdout == "4\n", done.stderr
    assert (report.asked, report.ended, report.steps_s) == (7, 4, ())


def test_a_break_ends_a_loop_and_the_next_one_goes_on(tmp_path):
    done, report = run(tmp_path, "if len(done) == 3: done.append(0); break", epochs=2)

    assert report.ended == 7, done.stderr
    assert len(report.steps_s) == 5


def test_an_error_in_the_body_ends_the_program_as_ever(tmp_path):
    done, report = run(tmp_path, "1 / 0")

    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert report.steps_s == ()


def test_a_loop_within_a_loop_is_refused(tmp_path):
    body = "list(ci_perf.steps(range(3)))"

    done, _ = run(tmp_path, body)

    assert "expected one loop at a time, found one within another" in done.stderr


def test_another_loop_is_refused_with_its_place(tmp_path):
    """The first one would decide: a cheap loop hid a real one."""
    program = (
        "import ci_perf\n"
        "for batch in ci_perf.steps(range(9), warmup=2, steps=5): pass\n"
        "for batch in ci_perf.steps(range(9), warmup=2, steps=5): pass\n"
    )

    done, _ = run(tmp_path, program=program)

    assert done.returncode == 1
    assert "expected one loop in a program, found <string>:2 and <string>:3" in done.stderr


@pytest.mark.parametrize("wrong", ["warmup=0", "steps=0"])
def test_numbers_below_one_are_refused(tmp_path, wrong):
    program = f"import ci_perf\nci_perf.steps([], **dict({wrong}))"

    done, _ = run(tmp_path, program=program)

    assert f"{wrong[:-2]}: expected a number from 1 on, found 0" in done.stderr


def test_losses_are_numbers_or_tensors(tmp_path):
    body = "import torch; ci_perf.record(loss=torch.tensor(0.5 * len(done), requires_grad=True))"

    _, report = run(tmp_path, body)

    assert report.losses == (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)


def test_compiled_graphs_are_counted_where_torch_compiles(tmp_path):
    program = (
        "import torch, torch._dynamo.utils, ci_perf\n"
        "step = torch.compile(lambda x: x + 1, backend='eager')\n"
        "for batch in ci_perf.steps([torch.ones(2)] * 9, warmup=1, steps=2): step(batch)\n"
    )

    done, report = run(tmp_path, program=program)

    assert report is not None, done.stderr
    assert (report.compiles.graphs, report.compiles.graph_breaks) == (1, 0)


def test_of_several_ranks_the_first_one_reports(tmp_path):
    assert run(tmp_path, RANK="1")[1] is None
    assert run(tmp_path, RANK="0")[1].ended == 7


def test_a_fork_of_the_program_reports_nothing(tmp_path):
    """It would end before the loop, and leave its own half of a report."""
    fork = "import os\n        if not done and os.fork() == 0: raise SystemExit\n"

    done, report = run(tmp_path, f"{fork}        os.wait() if not done else None")

    assert done.returncode == 0, done.stderr
    assert (report.ended, len(report.steps_s)) == (7, 5)


def test_a_loss_is_kept_as_it_was(tmp_path):
    body = "import torch; loss = torch.ones(1); ci_perf.record(loss=loss); loss *= 5"

    _, report = run(tmp_path, body)

    assert set(report.losses) == {1.0}


def test_metrics_are_kept_but_for_those_of_the_warm_up(tmp_path):
    load, score = (f"ci_perf.record(dict([('{each}', 0.5)]))" for each in ("time.load", "score.f1"))
    program = PROGRAM.replace("done = []", f"done = []\n{load}") + score
    body = "ci_perf.record({'count.batch': batch}, loss=batch)"

    done, report = run(tmp_path, body, program=program)

    assert done.returncode == 0, done.stderr
    assert report.metrics == {
        "time.load": (0.5,),
        "count.batch": (2.0, 3.0, 4.0, 5.0, 6.0),
        "score.f1": (0.5,),
    }
    assert len(report.losses) == 7


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ttft", "ValueError: expected a name like 'time.ttft'"),
        ("time.ttft", "ValueError: time.ttft: expected a number above 0"),
    ],
)
def test_a_number_that_says_nothing_is_refused_at_its_line(tmp_path, name, said):
    done, _ = run(tmp_path, program=f"import ci_perf\nci_perf.record(dict([('{name}', 0)]))")

    assert said in done.stderr


def test_outside_of_a_check_a_later_use_is_a_plain_attribute():
    ci_perf.record(loss=1.0)

    assert vars(ci_perf)["record"] is ci_perf.record
