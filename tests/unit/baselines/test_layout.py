import json

import msgspec
import pytest

from ci_perf.baselines import layout
from ci_perf.errors import InvalidFileError
from ci_perf.model.environment import CpuMachine, GpuMachine
from tests.accepting import accepted
from tests.runs import (
    CPU,
    GPU,
    STEADY,
    a_measured,
    a_run,
    an_environment,
    some_canaries,
)

LOSSES = (2.302585092994046, 2.295412345678901)


def test_the_session_of_a_baseline_reads_line_by_line(root):
    measured = a_measured("a", *STEADY, losses=LOSSES)
    environment = an_environment(image="pytorch@sha256:417bd75df636")
    accepted(root, a_run(measured, canaries=some_canaries(), environment=environment))

    lines = layout.path(root, CPU, "smoke", "a").read_text().splitlines()
    assert '      "canaries": {"matmul after": 0.001, "matmul before": 0.001},' in lines
    assert '        "losses": [2.30258509, 2.29541235],' in lines
    assert sum(line.lstrip().startswith('{"first_step_s"') for line in lines) == len(STEADY)
    (software,) = (line for line in lines if '"soft"' in line)
    assert '"image": "pytorch@sha256:417bd75df636"' in software
    assert '    "step_p05_s"' not in "\n".join(lines)


def test_a_canary_that_took_no_time_is_refused(root):
    accepted(root, a_run(a_measured("a", *STEADY, losses=LOSSES), canaries=some_canaries()))
    path = layout.path(root, CPU, "smoke", "a")
    path.write_text(path.read_text().replace('"matmul after": 0.001', '"matmul after": 0'))

    with pytest.raises(InvalidFileError, match=r"canaries\.matmul after: expected a number > 0"):
        layout.read(path)


def edited(root, edit):
    accepted(root, a_run(a_measured("a", *STEADY)))
    path = layout.path(root, CPU, "smoke", "a")
    data = json.loads(path.read_text())
    edit(data)
    path.write_text(json.dumps(data))
    return path


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            lambda d: d["headline"].update(step_time_s=9),
            r"the sessions give step_time_s [\d.e-]+, found step_time_s 9.0;",
        ),
        (
            lambda d: d["headline"].pop("step_time_s"),
            r"the sessions give step_time_s [\d.e-]+, found step_time_s absent;",
        ),
        (lambda d: d.update(workload="b"), r"\$\.workload: expected 'a', the name of the file"),
        (
            lambda d: d["sessions"][0]["processes"][0].update(step_time_s=-1),
            r"processes\[0\]\.step_time_s: expected a number > 0.*, found -1",
        ),
        (
            lambda d: d["sessions"][0]["processes"][0].update(step_tme_s=1),
            r"unknown metric 'step_tme_s'; did you mean 'step_time_s'\?",
        ),
        (lambda d: d.update(sessions=[]), r"sessions"),
        (
            lambda d: d["sessions"][0].update(epochs={"step_tme_s": 1}),
            r"sessions\[0\]\.epochs: unknown metric 'step_tme_s'; did you mean 'step_time_s'\?",
        ),
        (lambda d: d.update(suite="other"), r"\$\.suite: expected 'smoke', the name of the folder"),
        (
            lambda d: d["sessions"][0]["processes"][0].update(step_time_s=5e-324),
            r"step_time_s: expected a number > 0",
        ),
        (
            lambda d: d["sessions"][0]["processes"][0].update(host_rss_peak_bytes=1e308),
            r"host_rss_peak_bytes: expected a number > 0, up to 1e\+18",
        ),
    ],
)
def test_a_baseline_edited_by_hand_says_what_is_wrong(root, edit, message):
    path = edited(root, edit)

    with pytest.raises(InvalidFileError, match=message) as caught:
        layout.read(path)
    assert str(caught.value).startswith(str(path))


def test_the_smallest_and_the_largest_number_are_read(root):
    canaries = {"a": layout.SMALLEST, "b": layout.LARGEST}
    path = edited(root, lambda d: d["sessions"][0].update(canaries=canaries))

    assert layout.read(path).sessions[0].canaries == canaries


def test_what_could_not_be_read_again_is_not_written(root):
    accepted(root, a_run(a_measured("a", *STEADY)))
    (known,) = layout.read_all(root, CPU, "smoke")

    with pytest.raises(InvalidFileError, match="sessions"):
        layout.write(root, msgspec.structs.replace(known, sessions=()))
    assert layout.read_all(root, CPU, "smoke") == (known,)


def a_gpu(model, *, count=1, mig=False):
    return GpuMachine(gpu_model=model, gpu_count=count, gpu_memory_bytes=1, mig=mig)


@pytest.mark.parametrize(
    ("machine", "key"),
    [
        (CpuMachine(cpu_model="AMD EPYC", logical_cores=2), "cpu-amd-epyc-2-cores"),
        (
            CpuMachine(cpu_model="Intel(R) Xeon(R) CPU @ 2.20GHz", logical_cores=8),
            "cpu-intel-xeon-8-cores",
        ),
        (CpuMachine(cpu_model="", logical_cores=1), "cpu-unknown-1-cores"),
        (CpuMachine(cpu_model="x" * 300, logical_cores=1), f"cpu-{'x' * 80}-1-cores"),
        (
            msgspec.structs.replace(CPU, gpus="NVIDIA H200 x2, NVIDIA L4"),
            "cpu-amd-epyc-2-cores-nvidia-h200-x2-nvidia-l4",
        ),
        (a_gpu("NVIDIA H200"), "nvidia-h200"),
        (a_gpu("NVIDIA A100-SXM4-80GB", count=4), "nvidia-a100-sxm4-80gb-x4"),
        (a_gpu("NVIDIA H200", count=2), "nvidia-h200-x2"),
        (a_gpu("NVIDIA H100", mig=True), "nvidia-h100-mig"),
        (a_gpu("NVIDIA H100 MIG 1g.10gb", mig=True), "nvidia-h100-mig-1g-10gb"),
        (a_gpu("../../etc"), "etc"),
    ],
)
def test_a_class_of_machines_has_a_readable_name(machine, key):
    assert layout.machine_key(machine) == key


def test_without_baselines_of_a_machine_those_of_the_most_similar_name_are_read(root):
    accepted(root, a_run(a_measured("a", *STEADY), environment=an_environment(hard=GPU)))
    similar = msgspec.structs.replace(GPU, gpu_count=8)
    (root / "nvidia-h200-x4/smoke").mkdir(parents=True)  # nothing lies there

    assert [baseline.workload for baseline in layout.read_all(root, similar, "smoke")] == ["a"]
    assert layout.read_all(root, similar, "standard") == ()
