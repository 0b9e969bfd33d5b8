import base64
import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest

from ci_perf.model.comparison import Verdict
from ci_perf.report import html
from tests.comparisons import a_change, a_comparison
from tests.runs import a_failed, a_measured, a_run
from tests.unit.report import shapes


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, _attrs):
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_a_run_shows_each_workload_with_human_numbers():
    text = html.run(a_run(a_measured("mlp", 1e-3, 1e-3, parameters={"width": 8})))

    assert "<td>mlp</td><td>width=8</td><td>1.00 ms</td>" in text
    assert "300 MiB" in text


def test_a_run_shows_what_is_judged_and_leaves_the_rest_to_its_table():
    text = html.run(a_run(a_measured("mlp", 1e-3, graphs=2, flops=17_200_000_000)))

    assert "<th>cold compile</th>" in text
    assert "<td>17.2 GFLOP</td>" in text
    assert "5 % are faster" not in text


def test_a_failed_workload_is_in_the_table():
    text = html.run(a_run(a_failed("conv", "CUDA error")))

    assert "failed in timed: CUDA error" in text


@pytest.mark.parametrize("shape", shapes.ALL, ids=lambda shape: shape.__name__)
def test_a_comparison_of_any_shape_is_whole_html(shape):
    tags = Tags(html.comparison(shape()))

    assert tags.open == []
    assert not tags.seen & {"a", "script", "svg", "x"}


def test_the_interval_of_a_row_is_an_image_that_a_notebook_keeps():
    rows = (a_change("mlp", Verdict.REGRESSED, ratio=1.05), a_change("conv", interval=None))
    images = re.findall(
        r'<img alt="([^"]*)" width="300" src="data:([^"]*)"/>', html.comparison(a_comparison(*rows))
    )

    (axis, _), (label, picture), _ = images  # above each table the axis
    assert axis.startswith("axis from ")
    assert label == "change +5.0 % [+4.0, +6.0], limit 2 %"
    head, _, data = picture.partition(",")
    svg = ET.fromstring(base64.b64decode(data))
    assert head == "image/svg+xml;base64"
    assert svg.tag == "{http://www.w3.org/2000/svg}svg"
    assert {use.get("href") for use in svg.iter("{http://www.w3.org/2000/svg}use")} == {"#head"}


def test_a_command_is_shown_whole_and_as_text():
    names = [f"a_workload_with_a_long_name.batch={n}<b>" for n in (16, 1024)]
    rows = (a_change(name, Verdict.REGRESSED, ratio=1.9) for name in names)
    text = html.comparison(a_comparison(*rows))

    assert f"--workload &#39;{names[1][:-3]}&lt;b&gt;&#39; --reason &#34;…&#34;" in text


def test_text_of_a_run_is_text_and_no_tag():
    hostile = "<script>alert(1)</script>\u202e"
    text = html.run(a_run(a_failed(hostile, hostile), a_measured(hostile + "2", 1e-3)))

    assert "script" not in Tags(text).seen
    assert "&lt;script&gt;" in text
    assert "\u202e" not in text
