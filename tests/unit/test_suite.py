import textwrap
from pathlib import Path

import pytest

from ci_perf import suite
from ci_perf.errors import InvalidFileError, UsageError
from ci_perf.model.suite import Limit


@pytest.fixture
def folder(tmp_path):
    """A folder with two workload files that would raise when imported."""
    for name in ("matmul", "bert"):
        (tmp_path / f"{name}.py").write_text(f'"""About {name}.\n\nMore."""\nraise SystemExit\n')
    return tmp_path


def plan(folder, text, name="smoke", **options):
    (folder / "suite.toml").write_text(textwrap.dedent(text))
    return suite.plan(folder, name, root=folder, **options)


BOTH = """
    [[suites.smoke.workloads]]
    workload = "matmul"
    matrix = {size = [256, 512], dtype = ["fp32", "bf16"]}
    [[suites.smoke.workloads]]
    workload = "bert"
    """


def test_a_matrix_makes_a_workload_of_each_combination(folder):
    found = plan(folder, BOTH)

    assert [w.id for w in found.workloads] == [
        "matmul.size=256.dtype=fp32",
        "matmul.size=256.dtype=bf16",
        "matmul.size=512.dtype=fp32",
        "matmul.size=512.dtype=bf16",
        "bert",
    ]
    assert found.workloads[0].parameters == {"size": 256, "dtype": "fp32"}


def test_descriptions_come_from_the_docstring_without_an_import(folder):
    assert plan(folder, BOTH).workloads[-1].description == "About bert."


def test_a_file_that_cannot_be_parsed_is_still_listed(folder):
    (folder / "bert.py").write_text("def broken(:")

    assert plan(folder, BOTH).workloads[-1].description == ""


@pytest.mark.parametrize(
    ("selection", "count"),
    [((), 5), (("bert",), 1), (("matmul",), 4), (("matmul.size=256",), 2), (("mat", "bert"), 0)],
)
def test_a_selection_is_an_id_or_what_stands_before_a_dot(folder, selection, count):
    if count:
        assert len(plan(folder, BOTH, selection=selection).workloads) == count
    else:
        with pytest.raises(UsageError, match="no workload 'mat'; did you mean 'matmul'"):
            plan(folder, BOTH, selection=selection)


def test_inner_settings_override_outer_ones_key_by_key(folder):
    found = plan(
        folder,
        """
        protocol = {processes = 7, seed = 3}
        limits = {step_time_s = {relative = 0.1}}
        [suites.smoke]
        protocol = {processes = 4}
        [[suites.smoke.workloads]]
        workload = "bert"
        protocol = {timeout_s = 9}
        limits = {step_time_s = {relative = 0.3}}
        [[suites.smoke.workloads]]
        workload = "matmul"
        """,
        protocol={"processes": 2},
    )

    bert = found.workloads[0].protocol
    assert (bert.processes, bert.seed, bert.timeout_s) == (2, 3, 9)
    assert found.limits.of("bert")["step_time_s"] == Limit(relative=0.3)
    assert found.limits.of("matmul")["step_time_s"] == Limit(relative=0.1)
    assert found.limits.of("deleted")["step_time_s"] == Limit(relative=0.1)
    assert found.limits.of("bert")["graph_breaks"] == Limit()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[suites.smoke.workloads]]\nworkload = 'matmull'", "no.*did you mean 'matmul'"),
        ("[[suites.smoke.workloads]]\nworklod = 'bert'", "unknown key 'worklod'; did you mean"),
        ("limts = {}", "unknown key 'limts'; did you mean 'limits'"),
        (
            "limits = {step_time = {}}\n[suites.smoke]\nworkloads = []",
            "unknown metric 'step_time'; did you mean 'step_time_s'",
        ),
        (
            "[suites.smoke]\nprotocol = {proceses = 2}\nworkloads = []",
            r"\$\.suites\.smoke\.protocol: unknown setting 'proceses'; did you mean 'processes'",
        ),
        (
            "[[suites.smoke.workloads]]\nworkload = 'bert'\nprotocol = {processes = 0}",
            r"processes: expected int >= 1, found 0",
        ),
        (
            "[[suites.smoke.workloads]]\nworkload = 'bert'\nprotocol = {processes = 'many'}",
            "expected int, found str",
        ),
        ("limits = {step_time_s = {relative = nan}}\n[suites]", ">= 0"),
        ("limits = {step_time_s = {absolute = inf}}\n[suites]", "finite"),
        ("limits = {step_time_s = {relative = -1}}\n[suites]", ">= 0"),
        ("[[suites.smoke.workloads]]\nworkload = 'bert'\n" * 2, "found 'bert' again.*`name`"),
        ("[suites.builtin-x]\nworkloads = []", "names of ours begin so"),
        ("schema_version = 2\n[suites]", "newer ci-perf"),
        ("a b", "expected TOML"),
    ],
)
def test_a_mistake_in_suite_toml_names_the_place_and_the_near_word(folder, text, message):
    with pytest.raises(InvalidFileError, match=message) as caught:
        plan(folder, text)
    assert str(caught.value).startswith(str(folder / "suite.toml"))


def test_two_entries_of_one_file_have_names(folder):
    found = plan(
        folder,
        """
        [[suites.smoke.workloads]]
        workload = "bert"
        name = "bert_long"
        [[suites.smoke.workloads]]
        workload = "bert"
        """,
    )

    assert [w.id for w in found.workloads] == ["bert_long", "bert"]


def test_an_unknown_suite_is_named_with_the_nearest(folder):
    with pytest.raises(UsageError, match="no suite 'smok'; did you mean 'smoke'"):
        plan(folder, BOTH, "smok")


def test_no_suite_file_says_what_to_do(tmp_path):
    with pytest.raises(InvalidFileError, match="ci-perf init"):
        suite.plan(tmp_path, "smoke", root=tmp_path)


def test_the_shipped_suite_is_found_from_anywhere(tmp_path):
    found = suite.plan(tmp_path, "builtin:smoke", root=tmp_path)

    assert found.suite == "builtin:smoke"
    assert all(Path(w.file).exists() for w in found.workloads)
    assert "matmul.size=256" in [w.id for w in found.workloads]
