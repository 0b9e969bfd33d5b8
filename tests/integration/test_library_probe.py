"""torch and NVML are asked in a child that may hang, die or chatter."""

import subprocess
import sys

import pytest

from ci_perf.measuring import library_probe
from ci_perf.model.facts import NvmlSilence, TorchBroken, TorchBuild, TorchMissing


@pytest.fixture
def in_place_of_torch(tmp_path, monkeypatch):
    """Put a module of this text where the child looks for torch."""

    def write(text):
        (tmp_path / "torch.py").write_text(text)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    return write


def test_the_installed_torch_describes_itself_and_not_a_file_of_the_working_folder(
    tmp_path, monkeypatch
):
    (tmp_path / "torch.py").write_text("raise RuntimeError('not me')")
    monkeypatch.chdir(tmp_path)

    found = library_probe.torch_facts()

    assert isinstance(found, TorchBuild)
    assert found.version[0].isdigit()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("raise OSError('libcudart.so.12: not found')", "OSError: libcudart.so.12: not found"),
        ("import module_that_torch_needs", "No module named 'module_that_torch_needs'"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", "SIGILL"),
        ("print('I am somebody else')", "__version__"),
        ("raise ModuleNotFoundError('No module named torch', name='torch')", None),
    ],
    ids=["fails", "lacks a module", "is killed", "is another module", "is not there"],
)
def test_a_torch_that_cannot_be_imported_is_broken_with_its_reason_or_missing(
    in_place_of_torch, text, reason
):
    in_place_of_torch(text)

    found = library_probe.torch_facts()

    if reason is None:
        assert found == TorchMissing()
    else:
        assert isinstance(found, TorchBroken)
        assert reason in found.reason


def test_a_library_that_hangs_is_given_up(in_place_of_torch):
    in_place_of_torch("import time; time.sleep(60)")

    found = library_probe.torch_facts(timeout_s=1.0)

    assert found == TorchBroken(reason="no answer within 1 s")


def test_what_a_library_prints_is_not_taken_for_the_answer(in_place_of_torch):
    in_place_of_torch(
        "import types\n"
        'print(\'{"state": "missing"}\')\n'
        "__version__ = '9.9'\n"
        "version = types.SimpleNamespace(cuda='12.8', hip=None)\n"
        "cuda = types.SimpleNamespace(device_count=lambda: 2)\n"
        "def ones(*_args, **_more):\n"
        "    raise RuntimeError('CUDA error:\\nbusy')\n"
    )

    assert library_probe.torch_facts() == TorchBuild(
        version="9.9",
        cuda="12.8",
        hip=None,
        device_count=2,
        cuda_error="RuntimeError: CUDA error: busy",
    )


def test_nvml_that_kills_its_process_is_silent(tmp_path, monkeypatch):
    (tmp_path / "pynvml.py").write_text("import os; os.abort()")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    found = library_probe.nvml_facts()

    assert isinstance(found, NvmlSilence)
    assert "SIGABRT" in found.detail


def test_asking_leaves_torch_out_of_the_asking_process():
    code = (
        "import sys; from ci_perf.measuring import library_probe; library_probe.torch_facts;"
        "assert 'torch' not in sys.modules"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
