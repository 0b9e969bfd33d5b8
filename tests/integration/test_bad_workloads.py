"""One bad workload never stops the rest, and never disappears: every way to be bad, for real."""

import os
import re
import sys

import pytest

from ci_perf.model.process import Phase, WorkerResult
from ci_perf.model.task import TaskFailure
from ci_perf.system import child
from tests.launches import BUILD, HEAD, PASS


def test_a_good_workload_has_a_result(launch):
    result = launch(HEAD + PASS + BUILD)

    assert isinstance(result, WorkerResult)
    assert result.process.timed.block_s
    assert result.process.memory.host_rss_peak_bytes > 2**20
    assert result.process.memory.device is None


NOTHING = "import nothing_like_it\n"
DEVICES = "import torch\ndef step():\n    torch.ones(2) + torch.ones(2, device='meta')\n"
LATER = "n = 0\ndef step():\n    global n\n    n += 1\n    assert n < 15, n\n"
EXIT = "import os\ndef step():\n    os._exit({})\n"
# What a file does: the reason, by phase.
FAILING = {
    Phase.IMPORT: {
        NOTHING: "ModuleNotFoundError: No module named .* `setup` in suite.toml.* `python_path`",
        "def broken(:\n": "SyntaxError: ",
        "raise SystemExit('no licence')\n": "SystemExit: no licence",
        "x = 1\n": r"it\.py: expected a function `build\(context\)`, found none",
        "build = 3\n": r"expected a function .*, found int",
    },
    Phase.BUILD: {
        f"def build(context):\n    from os {NOTHING}": "ImportError: cannot import .* `setup` in",
        "def build(context):\n    1 / 0\n": "ZeroDivisionError",
        "def build(context):\n    return 3\n": r"return a ci_perf.workload.Workload, found int",
    },
    Phase.FIRST_STEP: {
        "def step():\n    raise ValueError('bad\\n  shape')\n": "ValueError: bad shape",
        DEVICES: r"RuntimeError: .* device .*; next: in build, .*`tensor\.to\(context\.device\)`$",
        EXIT.format(0): "ended with exit code 0 in phase first_step, without a result",
        EXIT.format(7): "ended with exit code 7",
        "import ctypes\ndef step():\n    ctypes.string_at(0)\n": "ended by SIGSEGV",
        "import os\ndef step():\n    os.kill(os.getpid(), 9)\n": "ended by SIGKILL.*out-of-memory",
    },
    Phase.WARMUP: {LATER: "AssertionError: 15"},
}
# What a Workload is given; test_user_code.py has all that is refused.
REFUSED = {
    Phase.BUILD: ("items_per_step=0", "items_per_step: expected a number > 0, found 0"),
    Phase.FINGERPRINT: ("loss=lambda: None", "loss: expected a finite number, found None"),
}


def fails(launch, source, phase, reason):
    trouble = launch(source)

    assert isinstance(trouble, TaskFailure)
    assert trouble.phase is phase
    assert re.search(reason, trouble.reason), trouble.reason


@pytest.mark.parametrize(
    ("phase", "source", "reason"),
    [(phase, *each) for phase, sources in FAILING.items() for each in sources.items()],
)
def test_every_way_to_fail_has_its_phase_and_reason(launch, phase, source, reason):
    fails(launch, HEAD + source + BUILD if "def step" in source else source, phase, reason)


@pytest.mark.parametrize(
    ("phase", "given", "reason"),
    [(phase, *each) for phase, each in REFUSED.items()],
)
def test_what_a_workload_is_given_is_examined(launch, phase, given, reason):
    build = f"def build(c):\n    return Workload(step=step, {given})\n"
    fails(launch, HEAD + PASS + build, phase, reason)


def test_the_size_of_an_epoch_and_the_loss_of_each_step_stand_in_the_result(launch):
    given = "step=step, items_per_epoch=50_000, loss=lambda: 0.5"
    result = launch(f"{HEAD}{PASS}def build(c):\n    return Workload({given})\n")

    assert result.items_per_epoch == 50_000
    assert set(result.process.fingerprint.losses) == {0.5}


@pytest.mark.parametrize("farewell", ["sys.stdout.close()", "sys.stderr = sys.stdout = None"])
def test_a_workload_may_close_its_streams(launch, farewell):
    source = HEAD + f"import sys\n{farewell}\n"

    assert isinstance(launch(source + PASS + BUILD), WorkerResult)
    assert launch(source + "1 / 0\n").reason == "ZeroDivisionError: division by zero"


# What a file may be that a reader would wait for, or never see the end of.
LEFT = (
    "os.mkfifo(it)",
    "os.symlink('/dev/zero', it)",
    "os.mkdir(it)",
    "open(it, 'w').truncate(2**36)",
)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        *(("result.json", made) for made in LEFT),
        ("trouble.json", LEFT[0]),
        ("phase", LEFT[1]),
    ],
)
def test_what_a_worker_leaves_is_read_with_suspicion(launch, name, make):
    source = f"""
import os, sys
it = os.path.join(sys.argv[1], {name!r})
if os.path.exists(it):
    os.unlink(it)
{make}
os._exit(0)
"""

    assert isinstance(launch(source), TaskFailure)


@pytest.mark.parametrize("of", ["os.environ['TMPDIR']", "sys.argv[1]"])
def test_a_workload_that_removes_its_scratch_folder_is_trouble_and_not_a_crash(
    launch, tmp_path, monkeypatch, use_tempdir, of
):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    use_tempdir(None)
    source = f"import os, shutil, sys\nshutil.rmtree({of})\n"

    first = launch(source + HEAD + PASS + BUILD)
    second = launch(HEAD + PASS + BUILD)

    assert "its folder" in first.reason
    assert "has been removed" in first.reason
    if "TMPDIR" in of:
        assert (second.phase, "cannot start" in second.reason) == (Phase.LAUNCH, True)
    else:
        assert isinstance(second, WorkerResult)


def test_a_workload_that_hangs_says_where(launch):
    trouble = launch(
        HEAD + "import time\ndef step():\n    time.sleep(600)\n" + BUILD, timeout_s=3.0
    )

    assert trouble.phase is Phase.FIRST_STEP
    assert "no result within the time limit of 3 s" in trouble.reason
    assert "in step" in trouble.output


def test_megabytes_of_output_are_drained_and_their_end_kept(launch):
    talk = "    print('x' * 99, flush=False)\n" * 50 + "    print('::error::gotcha')\n"

    result = launch(HEAD + "def step():\n" + talk + BUILD)
    trouble = launch(HEAD + "def step():\n" + talk * 1000 + "    1 / 0\n" + BUILD)

    assert isinstance(result, WorkerResult)
    assert len(trouble.output) <= child.TAIL_BYTES
    assert re.search(r'(?s)it.py", line \d+, in step\n +1 / 0\n.*ZeroDivisionError', trouble.output)


def test_output_that_is_not_text_does_not_matter(launch):
    source = "import sys\nsys.stdout.buffer.write(b'\\xff\\xfe\\x00')\nraise ValueError\n"

    assert "\ufffd" in launch(source).output


def test_the_measured_code_sees_no_token(launch):
    source = (
        "import os\nfound = [k for k in os.environ if 'TOKEN' in k and k != "
        "'TOKENIZERS_PARALLELISM'] + [k for k in os.environ if k.startswith('GITHUB_O')]\n"
        "raise ValueError(f'found {found}')\n"
    )
    secrets = {"GITHUB_TOKEN": "t", "ACTIONS_RUNTIME_TOKEN": "t", "GITHUB_OUTPUT": "/x"}

    trouble = launch(source, environment={**os.environ, **secrets})

    assert trouble.reason == "ValueError: found []"


def test_a_workload_imports_its_neighbours_and_none_stands_in_for_a_file_of_ours(launch, tmp_path):
    (tmp_path / "msgspec.py").write_text("raise SystemExit('wrong file')")
    (tmp_path / "my_model.py").write_text("step = lambda: None\n")

    assert isinstance(launch(HEAD + "from my_model import step\n" + BUILD), WorkerResult)


def test_an_interpreter_that_cannot_start_is_trouble_and_not_a_crash(launch, monkeypatch):
    # The launcher runs workers with the Python that runs it, and nothing else is of use to it.
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")

    trouble = launch(HEAD + PASS + BUILD)

    assert (trouble.phase, "cannot start a process" in trouble.reason) == (Phase.LAUNCH, True)
