"""The doctor says whether the gate was rehearsed on this machine, as it is now."""

import msgspec
import pytest

from ci_perf.features.doctor import rehearsals
from ci_perf.model import codec
from ci_perf.model.environment import CpuMachine
from tests.features.doctor.machines import a_cpu_torch, a_machine, a_torch, no_graphics
from tests.projects import Project
from tests.rehearsals import a_document
from tests.runs import GPU

HERE = CpuMachine(cpu_model="AMD EPYC", logical_cores=8)
WITHOUT_GPU = a_machine(graphics=no_graphics(), torch=a_cpu_torch())
OTHER_TORCH = a_machine(
    graphics=no_graphics(), torch=msgspec.structs.replace(a_torch(), version="2.14.0")
)


@pytest.mark.parametrize(
    ("facts", "documents", "code", "said"),
    [
        (WITHOUT_GPU, [], "never_rehearsed", "nobody knows"),
        (WITHOUT_GPU, [a_document()], "never_rehearsed", "nobody knows"),  # of two cores
        (WITHOUT_GPU, [a_document(hard=HERE)], "rehearsed", "on 2026-12-01."),
        (OTHER_TORCH, [a_document(hard=HERE)], "rehearsed_otherwise", "torch 2.13.0 → 2.14.0."),
        (a_machine(), [a_document(hard=GPU)], "rehearsed_otherwise", "driver none → 570.86.15."),
    ],
    ids=["never", "on another machine", "here", "before an upgrade", "on a GPU"],
)
def test_a_machine_that_was_never_rehearsed_or_has_changed_since_is_told(
    facts, documents, code, said
):
    finding = rehearsals.explain(facts, documents)

    assert (finding.code, said in finding.what) == (code, True), finding.what


def test_a_file_that_cannot_be_read_is_told_and_ends_nothing(tmp_path):
    good, bad = (tmp_path / name / "rehearsed.json" for name in ("cpu-a", "cpu-b"))
    for path, text in ((good, codec.encode(a_document())), (bad, "{}")):
        path.parent.mkdir()
        path.write_text(text)
    heard = []

    assert list(rehearsals.read_all(tmp_path, heard.append)) == [a_document()]
    assert "cpu-b/rehearsed.json" in heard[0]


def test_only_where_there_is_a_suite(tmp_path):
    project = Project(tmp_path)
    before = project.run("doctor").out

    project.workload("it").suite("it")

    assert "never_rehearsed" not in before
    assert "never_rehearsed" in project.run("doctor").out
