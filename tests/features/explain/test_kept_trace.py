"""What is taken out of a trace before people get it."""

import gzip

import pytest

from ci_perf.features.explain.worker import kept_trace

ROOT = "/home/ann/my.project"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('"host_name": "build-7.example"', '"host_name": ""'),
        ('"hostname":"a\\"b"', '"hostname":""'),
        ('"username": "ann"', '"username": ""'),
        ('"kernel_file": "/home/ann/my.project/src/net.py"', '"kernel_file": "src/net.py"'),
        ('"name": "src.py(3): /home/ann/my.project/a.py"', '"name": "src.py(3): a.py"'),
        ('"f": "/tmp/torchinductor_ann/x/c.py"', '"f": "…/c.py"'),
        ('"f": "/home/Ann Smith/a b/c.py"', '"f": "…/c.py"'),
        ('"f": "load /home/ann/w/data.bin, then"', '"f": "load …/data.bin, then"'),
        ('"f": "file:///home/ann/w/data.bin"', '"f": "file://…/data.bin"'),
        ('"f": "\\/home\\/ann\\/w\\/data.bin"', '"f": "…/data.bin"'),
        ('"f": "/home/ann/my.project-2/a.py"', '"f": "…/a.py"'),
        ('"memory bandwidth (GB/s)": 7.744', '"memory bandwidth (GB/s)": 7.744'),
        ('"name": "aten::mm"', '"name": "aten::mm"'),
        ('"name": "a/b/c"', '"name": "a/b/c"'),
    ],
)
def test_takes_out_who_and_where(text, kept):
    assert kept_trace.scrubber(ROOT)(text) == kept


def test_writes_lines_of_any_length(tmp_path):
    text = '{"traceEvents": [' + "1," * 2_000_000 + '1], "host_name": "vm"\n}\n'
    (tmp_path / "raw").write_text(text)

    assert kept_trace.write(tmp_path / "raw", tmp_path / "kept", ROOT) == ""

    kept = gzip.decompress((tmp_path / "kept").read_bytes()).decode()
    assert kept == text.replace('"vm"', '""')


def test_a_trace_that_is_too_large_is_not_kept(tmp_path, monkeypatch):
    (tmp_path / "raw").write_bytes(bytes(range(33, 127)) * 10)

    monkeypatch.setattr(kept_trace, "MOST_TRACE_BYTES", 100)
    assert "larger than 0 MiB" in kept_trace.write(tmp_path / "raw", tmp_path / "kept", ROOT)
    assert not (tmp_path / "kept").exists()
