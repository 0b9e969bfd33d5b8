"""The documents of a machine on disk."""

import json
import random

import msgspec
import pytest

from ci_perf.baselines import layout
from ci_perf.errors import InvalidFileError
from ci_perf.features.calibrate import calibration as judge
from ci_perf.session import with_calibration
from tests.plans import a_plan, a_planned
from tests.runs import CPU, GPU, a_measured, a_run, an_environment


def a_calibration(*names, hard=CPU):
    steps = [[f * s for s in (1e-3, 1.1e-3, 1.2e-3)] for f in (1, 1.01, 0.99, 1, 1.02, 0.98)]
    run = a_run(
        *(a_measured(name, *steps) for name in names), environment=an_environment(hard=hard)
    )
    return judge.calibrate(run, a_plan(*names), random.Random(0).random)


def test_a_calibration_is_read_as_it_was_written(tmp_path):
    written = a_calibration("a", "b")

    file = layout.write_calibration(tmp_path, written)

    assert file == tmp_path / layout.machine_key(CPU) / "calibration.json"
    assert layout.read_calibration(tmp_path, CPU) == written


def test_a_machine_that_was_never_calibrated_has_no_calibration(tmp_path):
    layout.write_calibration(tmp_path, a_calibration("a"))

    assert layout.read_calibration(tmp_path, GPU) is None


def test_another_machine_of_the_same_name_has_no_calibration(tmp_path):
    other = msgspec.structs.replace(CPU, cpu_model=f"{CPU.cpu_model} (R)")
    layout.write_calibration(tmp_path, a_calibration("a", hard=other))

    assert layout.machine_key(other) == layout.machine_key(CPU)
    assert layout.read_calibration(tmp_path, CPU) is None


def test_a_calibration_holds_for_every_board_of_a_model(tmp_path):
    written = a_calibration("a", hard=GPU)
    layout.write_calibration(tmp_path, written)
    another = msgspec.structs.replace(GPU, gpu_memory_bytes=GPU.gpu_memory_bytes - 3 * 2**20)

    assert layout.read_calibration(tmp_path, another) == written


def test_a_damaged_calibration_is_named_with_its_place(tmp_path):
    file = layout.write_calibration(tmp_path, a_calibration("a"))
    found = json.loads(file.read_text())
    found["workloads"]["a"]["pairs"] = -1
    file.write_text(json.dumps(found))

    with pytest.raises(InvalidFileError, match=r"calibration\.json: \$\.workloads.*found -1"):
        layout.read_calibration(tmp_path, CPU)


def test_a_calibration_beside_the_suites_is_no_baseline(tmp_path):
    layout.write_calibration(tmp_path, a_calibration("a"))

    assert layout.read_all(tmp_path, CPU, "smoke") == ()


def test_the_numbers_of_a_workload_stand_on_a_few_lines_of_their_own(tmp_path):
    lines = layout.write_calibration(tmp_path, a_calibration("a", "b")).read_text().splitlines()

    assert sum('"smallest_detectable"' in line for line in lines) == 2
    assert len(lines) < 80


def test_a_plan_is_completed_by_the_calibration_of_the_machine_it_meets(tmp_path):
    found = msgspec.structs.replace(a_calibration("a"), statistic="min")
    layout.write_calibration(tmp_path, found)
    plan = a_plan("free", a_planned("bound", statistic="p25"))

    on_cpu, on_gpu = (
        with_calibration(plan, layout.read_calibration(tmp_path, machine)) for machine in (CPU, GPU)
    )

    assert [w.protocol.statistic for w in on_cpu.workloads] == ["min", "p25"]
    assert on_gpu == plan
