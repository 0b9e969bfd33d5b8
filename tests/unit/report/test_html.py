import pytest

from ci_perf.report import html
from tests.runs import a_failed, a_measured, a_run
from tests.unit.report import shapes
from tests.unit.report.rendered import Elements


def test_a_run_shows_latency_throughput_memory_and_flops_of_each_workload():
    text = html.run(a_run(a_measured("mlp", 1e-3, flops=17_200_000_000), a_failed("conv", "CUDA")))

    for number in ("1.00 ms", "8.00k images/s", "300 MiB", "17.2 GFLOP"):
        assert f"<td>{number}</td>" in text.replace("\N{NO-BREAK SPACE}", " ")
    assert "<code>conv</code> failed: <code>CUDA</code>" in text


@pytest.mark.parametrize("shape", shapes.THREE, ids=lambda shape: shape.__name__)
def test_a_comparison_is_whole_html(shape):
    found = Elements(html.comparison(shape()))

    assert found.open == []
    assert not set(found.tags) & {"a", "script", "svg", "x"}


def test_text_of_a_run_is_text_and_no_tag():
    hostile = "<script>alert(1)</script>\u202e"
    text = html.run(a_run(a_failed(hostile, hostile), a_measured(hostile + "2", 1e-3)))

    assert "script" not in Elements(text).tags
    assert "&lt;script&gt;" in text
    assert "\u202e" not in text
