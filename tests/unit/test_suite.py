import os
import textwrap
from pathlib import Path

import pytest

from ci_perf import suite
from ci_perf.errors import InvalidFileError, UsageError
from ci_perf.model import codec
from ci_perf.model.suite import Limit, Plan
from tests import suites
from tests.suites import plan


@pytest.fixture
def folder(tmp_path):
    """A folder with two workload files that would raise when imported."""
    return suites.of("matmul", "bert", where=tmp_path)


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


def test_a_workload_knows_whether_suite_toml_sets_its_statistic(folder):
    """Also to what it is by default: the calibration of a machine then leaves it alone."""
    text = BOTH + 'protocol = {statistic = "median"}'

    assert [w.own_statistic for w in plan(folder, text).workloads] == [False] * 4 + [True]


def test_inner_settings_override_outer_ones_key_by_key(folder):
    found = plan(
        folder,
        """
        protocol = {processes = 7, seed = 3}
        limits = {step_time_s = {limit = 0.1}}
        [suites.smoke]
        protocol = {processes = 4}
        [[suites.smoke.workloads]]
        workload = "bert"
        protocol = {timeout_s = 9}
        limits = {step_time_s = {limit = 0.3}}
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
        ("[[suites.smoke.workloads]]\nworkload = 'bert'\n" * 2, "found 'bert' again.*`name`"),
        (
            "[[suites.smoke.workloads]]\nworkload = 'bert'\nmatrix = {a = A, b = A}".replace(
                "A", str(list(range(40)))
            ),
            "at most 1000 combinations, found 1600",
        ),
        ("[suites.smoke]\nworkloads = []", r"\$\.suites\.smoke\.workloads: expected at least one"),
        ("[suites.builtin-x]\nworkloads = []", "this prefix is reserved for ci-perf"),
        ("schema_version = 2\n[suites]", "newer ci-perf"),
        ("a b", "expected TOML"),
        ("x = " + "[" * 5000, "expected TOML, found it nested too deep"),
        ("schema_version = " + "1" * 5000, "expected TOML, found: .*digits"),
        (
            "environment = {hard = ['torch', 'tirch']}\n[suites]",
            r"\$\.environment\.hard: unknown fact 'tirch'; did you mean 'torch'",
        ),
        ("[suites.'my suite']\nworkloads = []", r"""\$\.suites\["my suite"\]: the key: expected"""),
    ],
)
def test_a_mistake_in_suite_toml_names_the_place_and_the_near_word(folder, text, message):
    with pytest.raises(InvalidFileError, match=message) as caught:
        plan(folder, text)
    assert str(caught.value).startswith(str(folder / "suite.toml"))


ENTRY = r"\$\.suites\.smoke\.workloads\[0\]"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ('name = "my workload"', rf'{ENTRY}\.name: expected str .*, found "my workload"'),
        ('name = "a\\u001b[2J"', rf'{ENTRY}\.name: .*found "a.u001b\[2J"'),
        ('matrix = {"a b" = [1]}', rf'{ENTRY}\.matrix\["a b"\]: the key: expected str'),
        ('parameters = {"a.b" = 1}', rf"{ENTRY}\.parameters\.a\.b: the key: expected str"),
        ("matrix = {size = [1], d = []}", rf"{ENTRY}\.matrix\.d: .* length >= 1, found \[\]"),
        ("matrix = {d = [1, nan]}", rf"{ENTRY}\.matrix\.d\[1\]: expected float .*, found NaN"),
        ("matrix = {d = [2, 1, 2]}", rf"{ENTRY}\.matrix\.d: .* different ids, found '2' twice"),
        ("matrix = {d = ['a b', 'a/b']}", rf"{ENTRY}\.matrix\.d: .* found 'a-b' twice"),
        ("parameters = {d = 9223372036854775808}", rf"{ENTRY}\.parameters\.d: expected int <="),
        ("protocol = {timeout_s = inf}", rf"{ENTRY}\.protocol\.timeout_s: .*found Infinity"),
        ("protocol = {timeout_s = 1e10}", rf"{ENTRY}\.protocol: \$\.timeout_s: .*<= 1000000000"),
        (
            f"matrix = {{d = ['{'x' * 200}']}}",
            rf"{ENTRY}: expected an id of at most 200 characters, found 207 in 'bert\.d=x",
        ),
    ],
    ids=lambda text: text[:40],
)
def test_what_could_not_be_written_is_refused_before_anything_is_measured(folder, setting, message):
    text = (
        f"[suites.other]\nworkloads = []\n[[suites.smoke.workloads]]\nworkload = 'bert'\n{setting}"
    )

    with pytest.raises(InvalidFileError, match=message) as caught:
        plan(folder, text)
    assert str(caught.value).startswith(str(folder / "suite.toml"))


RANKS = """
    [[suites.smoke.workloads]]
    workload = "bert"
    launch = "torchrun"
    matrix = {world_size = [1, 2]}
    [[suites.smoke.workloads]]
    workload = "matmul"
    """


def test_the_reserved_parameter_says_how_many_ranks_are_launched(folder):
    found = plan(folder, RANKS).workloads

    assert [(w.id, w.launch, w.world_size) for w in found] == [
        ("bert.world_size=1", "torchrun", 1),
        ("bert.world_size=2", "torchrun", 2),
        ("matmul", "process", 1),
    ]


def test_a_workload_is_told_how_many_devices_it_was_promised(folder):
    text = """
        [[suites.smoke.workloads]]
        workload = "bert"
        parameters = {world_size = 4}
        """
    (found,) = plan(folder, text).workloads

    assert (found.launch, found.world_size) == ("process", 4)
    assert found.parameters == {"world_size": 4}


@pytest.mark.parametrize(("value", "shown"), [("0", "0"), ("true", "True"), ("'2'", "'2'")])
@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("parameters = {{world_size = {}}}", r"parameters\.world_size"),
        ("matrix = {{world_size = [1, {}]}}", r"matrix\.world_size\[1\]"),
    ],
)
def test_a_number_of_ranks_that_is_none_is_refused_in_any_suite(folder, value, shown, line, place):
    other = f"[[suites.other.workloads]]\nworkload = 'bert'\n{line.format(value)}"
    message = rf"other\.workloads\[0\]\.{place}: expected an integer from 1 to 64, found {shown};"

    with pytest.raises(InvalidFileError, match=message) as caught:
        plan(folder, f"{textwrap.dedent(BOTH)}\n{other}")
    assert str(caught.value).startswith(str(folder / "suite.toml"))


def test_another_way_of_launching_is_refused_with_the_two_that_there_are(folder):
    text = "[[suites.smoke.workloads]]\nworkload = 'bert'\nlaunch = 'mpirun'"

    with pytest.raises(InvalidFileError, match=r"workloads\[0\]\.launch.*'mpirun'"):
        plan(folder, text)


@pytest.mark.parametrize(("line", "canaries"), [("", True), ("canaries = false", False)])
def test_a_suite_has_canaries_unless_it_says_otherwise(folder, line, canaries):
    text = f"[suites.smoke]\n{line}\n[[suites.smoke.workloads]]\nworkload = 'bert'"

    assert plan(folder, text).canaries is canaries


@pytest.mark.parametrize(
    "setting", ["monitor_hz = 1e-300", "timeout_s = 0", "cpus = '0-999999999'"]
)
def test_a_setting_that_makes_no_sense_is_refused(folder, setting):
    table = f"[protocol]\n{setting}\n"

    with pytest.raises(InvalidFileError, match=r"expected"):
        plan(folder, table + "[[suites.smoke.workloads]]\nworkload = 'matmul'")


@pytest.mark.parametrize("key", ["batch", "batch-size", "d_model", "2d"])
def test_the_name_of_a_parameter_may_be_any_word(folder, key):
    found = plan(folder, f"[[suites.smoke.workloads]]\nworkload = 'bert'\nmatrix = {{{key} = [1]}}")

    assert found.workloads[0].id == f"bert.{key}=1"


@pytest.mark.parametrize(
    ("source", "description"),
    [
        ('"""' + "long " * 3000 + '"""', ("long " * 40)[:199] + "…"),
        (r'"""half a \ud800 character"""', "half a ? character"),
        ("x=" + "-" * 100_000 + "1", ""),
        ("(" * 100_000, ""),
        ("x = " + "1" * 5000, ""),
    ],
    ids=lambda text: text[:20],
)
def test_no_source_makes_a_description_that_cannot_be_written(folder, source, description):
    (folder / "bert.py").write_text(source)

    assert plan(folder, BOTH).workloads[-1].description == description


def test_a_plan_survives_being_written(folder):
    found = plan(folder, BOTH)

    assert codec.decode(codec.encode(found), Plan, name="plan") == found


def test_a_folder_whose_name_is_too_long_is_a_clear_error():
    with pytest.raises(InvalidFileError, match="cannot be read: File name too long"):
        suite.load(Path("x" * 300))


def test_a_path_that_is_not_unicode_is_refused_before_anything_is_measured(tmp_path):
    odd = tmp_path / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    (odd / "bert.py").write_text("")

    with pytest.raises(InvalidFileError, match=r"caf.udce9.*: expected a path in UTF-8"):
        plan(odd, "[[suites.smoke.workloads]]\nworkload = 'bert'")


def test_a_workload_file_that_is_a_circle_of_links_is_left_for_the_run_to_report(folder):
    (folder / "bert.py").unlink()
    (folder / "bert.py").symlink_to("bert.py")

    assert plan(folder, BOTH).workloads[-1].description == ""


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


IN = "[container]\nimage = {image!r}\n"


@pytest.mark.parametrize(
    "image", ["", "perf", "perf:dev", f"ghcr.io/us/perf@sha256:{'0' * 64}", f"sha256:{'0' * 64}"]
)
def test_a_suite_may_name_an_image_that_is_not_pinned_for_it_may_be_measured_without(folder, image):
    assert plan(folder, IN.format(image=image) + textwrap.dedent(BOTH)).container.image == image


@pytest.mark.parametrize("image", ["--privileged", "Perf:1", "perf@sha256:12", "a b", "x" * 401])
def test_what_is_no_image_is_refused_with_its_place(folder, image):
    with pytest.raises(InvalidFileError, match=r"suite.toml: \$.container.image: .*expected"):
        plan(folder, IN.format(image=image) + textwrap.dedent(BOTH))


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


def test_without_a_file_each_workload_of_the_folder_is_one_of_the_default_suite(folder):
    (folder / "_helper.py").touch()

    found = suite.plan(folder, suite.choose(folder), root=folder)

    assert (found.suite, [w.id for w in found.workloads]) == ("default", ["bert", "matmul"])
    with pytest.raises(UsageError, match=r"without a suite\.toml: no suite 'smoke'; known: defau"):
        suite.plan(folder, "smoke", root=folder)


def test_without_files_there_is_no_suite_and_init_is_named(tmp_path):
    with pytest.raises(InvalidFileError, match=r"expected workloads \(\*\.py\), .*`ci-perf init`"):
        suite.plan(tmp_path, suite.choose(tmp_path), root=tmp_path)


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["nightly"], "nightly"),
        (["nightly", "smoke"], "smoke"),
        (["a", "b"], r"suite\.toml: expected --suite NAME, .*, found a, b"),
        ([], r"suite\.toml: expected --suite NAME, .*, found no suite"),
    ],
)
def test_where_no_suite_is_named_it_is_smoke_or_the_only_one(folder, names, chosen):
    tables = [f"[[suites.{name}.workloads]]\nworkload = 'bert'\n" for name in names]
    (folder / "suite.toml").write_text("".join(tables) or "[suites]\n")

    assert suite.choose(folder, "other") == "other"
    if chosen in names:
        assert suite.choose(folder) == chosen
    else:
        with pytest.raises(UsageError, match=chosen):
            suite.choose(folder)


COMMAND = "[[suites.smoke.commands]]\nname = 'serve'\ncommand = 'echo {rate}'\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (COMMAND, r"\$\.suites\.smoke\.device: expected 'cpu' beside commands, found 'auto'"),
        (f"{COMMAND}metric = 'x'", r"commands\[0\]: expected NAME_s=REGEX.*found 'x'"),
        (f"{COMMAND}metric = 't_ms=('", r"commands\[0\]: expected a regular expression"),
        (f"{COMMAND}require = '('", r"commands\[0\]: require: expected a regular expression"),
        (
            f"{COMMAND}server = 's'\nready = 'curl -f localhost:{{port}}'",
            r"commands\[0\]: ready: expected a URL of http or https, found 'curl",
        ),
        (f"{COMMAND}comand = 'x'", r"commands\[0\]: unknown key 'comand'; did you mean 'command'"),
        (f"{COMMAND}reads = 'jsn'", r"commands\[0\]: reads: expected \{output\} in the command"),
        (
            f"suites.smoke.device = 'cpu'\n{COMMAND}reads = 'vlm:f'",
            r"commands\[0\]\.reads: unknown format 'vlm'",
        ),
        (f"{COMMAND}reads = 'json:/f'", r"expected FORMAT:FILE with a file below the root"),
        (f"{COMMAND}metrics.a = {{kind = 'time'}}", "metrics: expected reads to say what"),
        (f"{COMMAND}reads = 'regex'\nmetrics.a = {{kind = 'time', find = 'x'}}", "one group"),
        (f"{COMMAND}reads = 'regex'\nmetrics.a = {{kind = 'validity', find = '(x)'}}", "at_most"),
        (f"{COMMAND}limits = {{'time.' = 1}}", r"commands\[0\]\.limits: unknown metric 'time\.'"),
    ],
)
def test_a_mistake_in_a_command_is_told_before_anything_is_launched(folder, text, message):
    with pytest.raises(InvalidFileError, match=message):
        plan(folder, text)


def test_the_limit_of_an_own_metric_stands_beside_it_and_changes_no_work(folder):
    text = f"suites.smoke.device = 'cpu'\n{COMMAND}reads = 'regex'\nlimits.time = 0.2\n"
    entry = "kind = 'time', find = '(.)'"
    plain, limited = (
        plan(folder, f"{text}metrics.a = {{{entry}{more}}}\nmetrics.b = {{{entry}}}")
        for more in ("", ", limit = 0.5, gate = false")
    )

    limits = limited.limits.of("serve")
    assert (limits["time.a"].relative, limits["time.a"].gate) == (0.5, False)
    assert (limits["time"].relative, limits["time"].gate) == (0.2, True)
    assert limits["time.b"] == plain.limits.of("serve")["time.a"] == limits["time"]
    assert plain.workloads == limited.workloads


def test_a_part_of_a_suite_with_commands_is_of_the_machine_of_the_whole(folder):
    """Commands may use a GPU: their baselines, and those beside them, are of a machine with it."""
    entry = "[[suites.smoke.workloads]]\nworkload = 'matmul'\n"
    text = f"suites.smoke.device = 'cpu'\n{entry}"

    assert plan(folder, text + COMMAND, selection=("matmul",)).commands
    assert not plan(folder, text).commands


def test_a_command_is_a_workload_for_each_value_of_its_matrix(folder):
    text = f"suites.smoke.device = 'cpu'\n{COMMAND}matrix = {{rate = [1, 4]}}"

    made = plan(folder, text).workloads

    assert [each.id for each in made] == ["serve.rate=1", "serve.rate=4"]
    assert {Path(each.file).name for each in made} == {"command.py"}
