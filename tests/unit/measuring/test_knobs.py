import json
import os
import subprocess
import sys

import pytest

from ci_perf.measuring import knobs
from ci_perf.model.suite import Protocol

# What is fixed cannot be loosened again, so a child of its own tries it.
FIX = """
import json, sys
from ci_perf.measuring import knobs
from ci_perf.model.suite import Protocol
knobs.fix_process(Protocol(**json.loads(sys.argv[1])))
print(json.dumps(knobs.read_knobs()))
"""


def held_with(**settings):
    done = subprocess.run(
        [sys.executable, "-c", FIX, json.dumps(settings)], stdout=subprocess.PIPE, check=True
    )
    return json.loads(done.stdout)


def test_cpus_and_memory_of_a_process_are_those_that_the_suite_names():
    one = str(min(os.sched_getaffinity(0)))

    held = held_with(cpus=one, memory_limit_bytes=3 * 2**30)

    assert (held["cpus"], held["memory_limit_bytes"]) == (one, 3 * 2**30)


def test_cpus_that_the_machine_does_not_have_are_refused_by_name():
    with pytest.raises(ValueError, match=r"expected CPUs among .*, found 9999; change `cpus`"):
        knobs.fix_process(Protocol(cpus="0,9999"))


def test_variables_that_choose_kernels_are_written_down(monkeypatch):
    chosen = {"OMP_NUM_THREADS": "3", "NCCL_ALGO": "Ring", "PYTORCH_ALLOC_CONF": "backend:native"}
    for name, value in chosen.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("LD_PRELOAD", raising=False)

    values = knobs.read_knobs()

    assert chosen.items() <= values.items()
    assert "LD_PRELOAD" not in values


@pytest.mark.parametrize(
    ("text", "cpus"), [("0", {0}), ("0-3", {0, 1, 2, 3}), ("0-1,8,10-11", {0, 1, 8, 10, 11})]
)
def test_a_list_of_cpus_reads_and_writes_as_taskset_spells_it(text, cpus):
    assert knobs._cpus(text) == cpus
    assert knobs._spell_cpus(cpus) == text


@pytest.mark.parametrize("before", ["", "sys.stderr.close(); ", "sys.stderr = None; "])
def test_a_process_that_ends_at_once_leaves_what_it_printed_and_calls_no_exit_handlers(before):
    code = (
        "import atexit, sys; from ci_perf.measuring import knobs; "
        "atexit.register(print, 'handler'); "
        f"print('result', end=''); {before}knobs.end_process(3)"
    )

    ended = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "result", "")
