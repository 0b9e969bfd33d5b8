"""The folder of kernels: both sides of one pair, for a diff."""

import subprocess

import pytest

from ci_perf.errors import CiPerfError
from ci_perf.gate.kernels import drop_sources, prepare_empty, write_kernels
from ci_perf.model.process import GeneratedCode, GeneratedKernel
from ci_perf.model.run import Pair
from tests.histories import in_turns
from tests.programs import a_same_program
from tests.runs import a_failed, a_measured, a_process, a_run


def a_side(*kernels, absent=""):
    """Make a process with kernels of "name:digest" words; each source is its digest."""
    pairs = (word.rsplit(":", 1) for word in kernels)
    made = [GeneratedKernel(name=n, digest=d, source=f"#include {d}\n") for n, d in pairs]
    code = GeneratedCode(kernels=tuple(made), absent=absent)
    return a_process(generated=code if kernels or absent else None)


def a_pair(base, head):
    return Pair(first="base", base=base, head=head)


def write(folder, *pairs):
    workload = "w.n=2"
    launched = (a_pair(*both) for both in pairs)
    run = in_turns(a_run(a_measured(workload)), launched, workload=workload)
    said = list(write_kernels(folder, run))
    kept = sorted(path for path in folder.rglob("*") if path.is_file())
    return said, {str(path.relative_to(folder)): path.read_text().split()[-1] for path in kept}


def test_partners_have_the_same_file_name_so_that_a_diff_shows_other_code_alone(tmp_path):
    base = a_side("same:1", "same:2", "sin:3", "gone:4")
    head = a_side("cos:5", "same:2", "same:1")

    said, texts = write(tmp_path, (base, head))

    folder = "w.n=2"
    assert texts == {
        f"base/{folder}/cos.cpp": "3",
        f"base/{folder}/gone.cpp": "4",
        f"base/{folder}/same.cpp": "2",
        f"base/{folder}/same.2.cpp": "1",
        f"head/{folder}/cos.cpp": "5",
        f"head/{folder}/same.cpp": "2",
        f"head/{folder}/same.2.cpp": "1",
    }
    (line,) = said
    assert line.startswith("kernels: base 4, head 3; compare them: ")
    command = line.split("compare them: ")[1].split()
    shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    assert "gone.cpp" in shown
    assert "same.cpp" not in shown
    assert "same.2.cpp" not in shown


@pytest.mark.parametrize(
    "name",
    ["../../../escape", "/etc/passwd", "a\0b", ".hidden", "\N{ROMAN NUMERAL ONE}", "", "x" * 5000],
)
def test_a_hostile_name_stays_in_the_folder(tmp_path, name):
    folder = tmp_path / "kernels"

    _, texts = write(folder, (a_side(f"{name}:1"), a_side(f"{name}:2")))

    assert list(texts.values()) == ["1", "2"]
    assert [path.name for path in tmp_path.iterdir()] == ["kernels"]


def test_names_that_differ_only_in_case_have_files_of_their_own(tmp_path):
    _, texts = write(tmp_path, (a_side("A:1", "a:2"), a_side("A:1", "a:2")))

    assert sorted(texts.values()) == ["1", "1", "2", "2"]


def test_kernels_of_one_side_alone_are_written(tmp_path):
    said, texts = write(tmp_path, (a_side(), a_side("a:1")))

    assert list(texts.values()) == ["1"]
    assert "base 0, head 1" in said[0]
    assert (tmp_path / "base").is_dir()


def test_without_any_kernel_the_last_line_says_so(tmp_path):
    nothing = "note: no kernels of w.n=2: its launches show no code of torch.compile"
    last = f"kernels: none in {tmp_path}"

    assert write(tmp_path, (a_side(), a_side())) == ([nothing, last], {})
    said, _ = write(tmp_path, (a_side(absent="gone.py"), a_side("a:1")))
    assert said[0] == "note: no kernels of w.n=2: gone.py"


def test_a_workload_whose_kernels_were_not_compared_is_named(tmp_path):
    names = ("a", "b", "eager", "alone")
    run = a_run(*map(a_measured, names), a_failed("failed"), same=(a_same_program("same"),))
    run = in_turns(run, [a_pair(a_side("k:1"), a_side("k:2"))], workload="a")
    run = in_turns(run, workload="b", trouble="the base fails")
    run = in_turns(run, [a_pair(a_side(), a_side())], workload="eager", unlaunched=("later",))

    *notes, _ = write_kernels(tmp_path, run)

    assert notes == [
        "note: no kernels of b, alone, failed, same, later: no pair of launches",
        "note: no kernels of eager: its launches show no code of torch.compile",
    ]


def test_pairs_of_an_earlier_run_have_no_source_and_are_passed_over(tmp_path):
    both = a_side("a:1"), a_side("a:2")
    run = in_turns(a_run(a_measured("w")), [a_pair(*both)])
    (earlier,) = drop_sources(run).paired[0].pairs

    _, texts = write(tmp_path, (earlier.base, earlier.head), both)

    assert "#include" not in str(earlier)
    assert list(texts.values()) == ["1", "2"]


def test_a_pair_whose_code_is_absent_hides_no_other_pair(tmp_path):
    head = a_side("a:1")
    run = in_turns(a_run(a_measured("w")), [a_pair(a_side(absent="gone.py"), head)])
    (earlier,) = drop_sources(run).paired[0].pairs
    absent = earlier.base, earlier.head

    said, texts = write(tmp_path / "alone", absent)
    assert (said[0], texts) == ("note: no kernels of w.n=2: gone.py", {})

    _, texts = write(tmp_path / "both", absent, (a_side("a:1"), a_side("a:2")))
    assert list(texts.values()) == ["1", "2"]


def test_a_folder_that_cannot_be_written_any_more_is_a_note(tmp_path):
    (tmp_path / "head").write_text("a file in the place of the folder")

    said, _ = write(tmp_path, (a_side("a:1"), a_side("a:1")))

    assert len(said) == 1
    assert said[0].startswith("note: --kernels: ")


@pytest.mark.parametrize(
    ("content", "said"),
    [("file", "cannot be made"), ("kept", "expected an empty"), ("base", "expected an empty")],
)
def test_a_folder_that_is_not_empty_is_refused_before_the_work(tmp_path, content, said):
    place = tmp_path / "kernels"
    if content == "file":
        place.write_text("")
    else:
        (place / content).mkdir(parents=True)  # "base" is what an earlier check left

    with pytest.raises(CiPerfError, match=said):
        prepare_empty(place)


def test_a_new_or_an_empty_folder_is_taken(tmp_path):
    assert prepare_empty(None) is None
    assert prepare_empty(tmp_path / "new/kernels") == tmp_path / "new/kernels"
    assert prepare_empty(tmp_path / "new/kernels") == tmp_path / "new/kernels"
