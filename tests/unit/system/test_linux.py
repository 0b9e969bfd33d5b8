import pytest

from ci_perf.measuring import environment_probe
from ci_perf.system import linux


@pytest.fixture
def proc(tmp_path):
    """A /proc of our own."""
    (tmp_path / "self").mkdir()
    (tmp_path / "pressure").mkdir()
    (tmp_path / "self/status").write_text("Name:\tx\nVmPeak:\t900 kB\nVmHWM:\t  2048 kB\n")
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: AMD EPYC 9454\n")
    (tmp_path / "meminfo").write_text("MemTotal:       1024 kB\nMemFree: 1 kB\n")
    for resource, percent in (("cpu", 1.5), ("memory", 0.25)):
        text = f"some avg10={percent} avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00\n"
        (tmp_path / "pressure" / resource).write_text(text)
    return tmp_path


def test_the_host_is_read_from_proc(proc):
    assert linux.rss_peak_bytes(proc) == 2 * 2**20
    assert linux.cpu_pressure(proc) == pytest.approx(0.015)
    assert linux.memory_pressure(proc) == pytest.approx(0.0025)
    assert linux.cpu_model(proc) == "AMD EPYC 9454"
    assert linux.memory_total_bytes(proc) == 2**20


def test_a_host_without_proc_is_not_a_crash(tmp_path):
    assert linux.rss_peak_bytes(tmp_path) > 2**20
    assert linux.cpu_pressure(tmp_path) is None
    assert linux.memory_pressure(tmp_path) is None
    assert linux.memory_total_bytes(tmp_path) == 0
    assert isinstance(linux.cpu_model(tmp_path), str)


def test_a_name_without_end_is_cut(proc):
    (proc / "cpuinfo").write_bytes(b"model name\t: \xff" + b"x" * 5000 + b"\n")

    assert len(linux.cpu_model(proc)) == 200
    assert linux.short("an image\udcff") == "an image?"


def test_the_image_and_the_allocator_are_cut(monkeypatch):
    monkeypatch.setenv("CI_PERF_IMAGE", "x" * 20_000)
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "x" * 20_000)

    environment = environment_probe.describe("cpu", 1).environment

    assert len(environment.soft.image or "") == 200
    assert len(environment.noted.allocator) == 200
