"""The documents against the code: what they name exists, and their tables are current."""

import ast
import itertools
import json
import math
import os
import re
import shlex
import tomllib
from pathlib import Path

import click
import msgspec
import pytest
from ruamel.yaml import YAML

from ci_perf.cli.main import COMMANDS, cli
from ci_perf.errors import ExitCode
from ci_perf.judging import rules
from ci_perf.judging.confirm import Confirmation, share_alpha
from ci_perf.judging.policy import PolicyKind, default_limits, policy_of
from ci_perf.launch import child_environment
from ci_perf.model import metrics
from ci_perf.model.comparison import Code, Verdict
from ci_perf.model.suite import PlannedWorkload, Protocol
from ci_perf.model.validity import Doubt
from tests.comparisons import a_change, a_numerics, an_uncompared
from tests.runs import CPU, VALID

ROOT = Path(__file__).parents[2]
SKIPPED = {"build", "dist", "golden", "node_modules"}
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
OUR_VARIABLES = re.compile(r"CI_PERF_[A-Z_]+[A-Z]")


def documents():
    """Every Markdown file of the repository, without what tools and tests put there."""
    found = []
    for folder, inner, names in os.walk(ROOT):
        inner[:] = [n for n in inner if n == ".github" or not (n[0] == "." or n in SKIPPED)]
        found += [Path(folder, name) for name in names if name.endswith(".md")]
    return sorted(found)


DOCUMENTS = documents()


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def unfenced(document):
    """Return a document without its blocks of code."""
    return FENCED.sub("", document.read_text(encoding="utf-8"))


def tables(name):
    """Yield every table of a document: its heading cells, then rows of cells without backticks."""
    for block in re.findall(r"(?:^\|.*\n?)+", text(name), re.MULTILINE):
        rows = [
            [cell.strip().replace("`", "") for cell in line.strip("| ").split(" |")]
            for line in block.splitlines()
            if not re.fullmatch(r"[|\-: ]+", line)
        ]
        yield rows[0], [[cell.strip(" |") for cell in row] for row in rows[1:]]


def table(name, *heading):
    """Return the rows of the only table of a document whose heading begins so."""
    (found,) = [rows for head, rows in tables(name) if head[: len(heading)] == list(heading)]
    return found


def blocks(name, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text(name), re.DOTALL | re.MULTILINE)


# --- layers


def test_the_layers_are_those_that_are_enforced():
    contracts = tomllib.loads(text("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    layers = "\n".join(contracts[0]["layers"])

    assert f"```\n{layers}\n```" in text("docs/architecture.md")


# --- links


def targets(document):
    """Yield the relative links of a document; what stands in code is no link."""
    prose = re.sub(r"`[^`\n]*`", "", unfenced(document))
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if not re.match(r"[a-z]+:", target):
            yield target


def anchors(document):
    """Name the headings of a document as GitHub does in links to them."""
    for heading in re.findall(r"^#+ (.+)$", unfenced(document), re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(document):
    for target in targets(document):
        path, _, anchor = target.partition("#")
        file = document.parent / path if path else document

        assert file.exists(), f"{target}: no such file"
        assert not anchor or anchor in anchors(file), f"{target}: no such heading"


def test_every_document_that_the_code_names_is_there():
    sources = [
        path for folder in ("ci_perf", "workloads") for path in (ROOT / folder).rglob("*.py")
    ]
    named = {
        name
        for path in sources
        for name in re.findall(r"\bdocs/[\w/-]+\.md", path.read_text(encoding="utf-8"))
    }

    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_every_document_is_in_the_index():
    index = ROOT / "docs/README.md"
    linked = {(index.parent / target).resolve() for target in targets(index)}
    expected = {p for p in DOCUMENTS if p.parent in {ROOT, ROOT / "docs", ROOT / "docs/decisions"}}

    assert expected - {index} <= linked


def test_every_schema_is_in_the_index():
    (row,) = re.findall(r"^.*\(schema/\).*$", text("docs/README.md"), re.MULTILINE)
    names = {path.name.partition(".")[0] for path in (ROOT / "docs/schema").iterdir()}

    assert {name for name in names if not re.search(rf"\b{name}\b", row)} == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_has_no_unmerged_part(document):
    assert not re.search(r"^(<{7}|>{7}) ", unfenced(document), re.MULTILINE)


# --- commands


def parameters_of(name):
    """Return the parameters of a command, and of those below it."""
    found = command_of(name)
    return [p for one in (found, *getattr(found, "commands", {}).values()) for p in one.params]


def command_of(name):
    return cli.get_command(click.Context(cli), name)


def typed(document):
    """Yield every `ci-perf` command line in code, as words, up to what belongs to the shell."""
    fenced = blocks(document.relative_to(ROOT), "console")
    inline = re.findall(r"`(ci-perf [^`\n]+)`", unfenced(document))
    for line in [*"\n".join(fenced).splitlines(), *inline]:
        if found := re.search(r"\bci-perf .*", line):
            words = shlex.split(found[0], comments=True)
            end = next((i for i, word in enumerate(words) if word in {"&&", "|", ">"}), None)
            yield words[1:end]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_line_in_a_document_could_be_typed(document):
    for name, *arguments in filter(None, typed(document)):
        assert name in {*COMMANDS, "--help", "--version"}, f"ci-perf {name}"
        options = {"--help"}
        if name in COMMANDS:
            options |= {option for p in parameters_of(name) for option in p.opts}
        for argument in itertools.takewhile(lambda each: each != "--", arguments):
            option = argument.partition("=")[0]
            assert not option.startswith("-") or option in options, f"ci-perf {name} {option}"


def variables():
    """Every variable that is read: of options, named in the source, and of a repository."""
    for name in COMMANDS:
        for parameter in command_of(name).params:
            yield f"CI_PERF_{name}_{parameter.name}".upper()
    for path in (ROOT / "ci_perf").rglob("*.py"):
        yield from OUR_VARIABLES.findall(path.read_text(encoding="utf-8"))
    yield from re.findall(r"vars\.(\w+)", text(".github/workflows/check.yml"))
    yield "CI_PERF_COMPLETE"  # click's, with an underscore before it


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_environment_variable_in_a_document_is_read(document):
    named = set(OUR_VARIABLES.findall(document.read_text(encoding="utf-8")))

    assert named <= set(variables())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_of_each_shell_is_one_that_click_knows(shell):
    from click import shell_completion

    page = text("docs/command-line.md")
    assert f"_CI_PERF_COMPLETE={shell}_source ci-perf" in page or f"`{shell}_source`" in page
    assert shell_completion.get_completion_class(shell) is not None


# --- the table of faults


def test_each_fault_of_a_gpu_is_shown_by_a_test():
    named = re.findall(r"\| (tests/[\w/]+\.py)::(\w+) \|", text("tests/gpu/README.md"))

    rows = re.findall(r"^\| (?!fault \||--)", text("tests/gpu/README.md"), re.MULTILINE)
    assert len(named) == len(rows) >= 25
    assert [name for file, name in named if f"def {name}(" not in text(file)] == []


# --- the README


def test_the_readme_lists_the_exit_codes():
    assert [int(row[0]) for row in table("README.md", "exit code")] == list(ExitCode)


def test_the_inputs_and_outputs_of_the_action_are_listed():
    action = YAML(typ="safe").load(text("action.yml"))
    named = [name for row in table("docs/github.md", "input") for name in row[0].split(", ")]
    (outputs,) = re.findall(r"\nIts outputs are ([^#]*)", text("docs/github.md"))

    assert sorted(named) == sorted(action["inputs"])
    assert set(re.findall(r"`([\w-]+)`", outputs)) == set(action["outputs"])


def test_the_sample_report_has_the_columns_of_a_real_one():
    golden = text("tests/golden/report_regressed.md")
    columns = re.findall(r"^\| Workload .*$", golden, re.MULTILINE)[0]

    assert f"> {columns}" in text("README.md")


# --- tables that repeat the code


def number(cell):
    return float(cell) if re.fullmatch(r"[\d.]+", cell) else cell


def test_the_protocol_table_is_current():
    rows = {row[0]: number(row[1]) for row in table("docs/measuring.md", "setting")}

    assert rows == {name: getattr(Protocol(), name) for name in Protocol.__struct_fields__}


@pytest.mark.parametrize(
    ("heading", "definition"),
    [
        ("The file", "SuiteFile"),
        ("A suite", "SuiteSpec"),
        ("A workload", "Entry"),
        ("A command", "CommandEntry"),
        ("A metric of your own", "OwnMetric"),
        ("Tests of pytest", "PytestEntry"),
        ("A limit", "LimitChange"),
        ("Setup", "Setup"),
        ("Container", "Container"),
        ("Environment", "Tiers"),
    ],
)
def test_the_reference_of_the_suite_has_every_key_of_the_schema(heading, definition):
    schema = json.loads(text("docs/schema/suite.schema.json"))["$defs"][definition]

    def default(name, key):
        if name in schema.get("required", ()):
            return "required"
        value = key.get("default")
        if value is None:
            return "optional"
        return "{}" if isinstance(value, dict) else json.dumps(value)

    expected = {name: default(name, key) for name, key in schema["properties"].items()}
    part = text("docs/suite.md").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| `?([^`|]*)`? \|", part, re.MULTILINE)

    assert dict(rows) == expected


def test_the_table_of_limits_is_current():
    rows = {
        name: (number(relative), number(absolute), gate)
        for names, relative, absolute, gate in table("docs/verdicts.md", "metric", "relative")
        for name in names.split(", ")
    }
    defaults, on_cpu = default_limits(), default_limits(CPU)
    own = {f"{name} on a CPU": on_cpu[name] for name in defaults if on_cpu[name] != defaults[name]}

    def describe(name, limit):
        if name.startswith(metrics.CANARY):
            return "needs pairs"
        return "fails" if limit.gate else "warns"

    assert rows == {
        name: (limit.relative, limit.absolute, describe(name, limit))
        for name, limit in (defaults | own).items()
    }


def test_the_table_of_metrics_is_current():
    rows = {row[0]: row[1] for row in table("docs/measuring.md", "metric", "unit")}

    assert rows == {metric.name: metric.unit.value for metric in metrics.ALL}


@pytest.mark.parametrize("document", ["docs/measuring.md", "docs/glossary.md"])
def test_the_metrics_of_which_more_is_better_are_named(document):
    (named,) = re.findall(r"[Ll]ower is better, except for ([^.|]+)", text(document))

    higher = {metric.name for metric in metrics.ALL if metric.better is metrics.Better.HIGHER}
    assert set(re.findall(r"`(\w+)`", named)) == higher


def test_what_is_assumed_of_each_kind_is_what_the_table_says():
    rows = {
        row[0]: tuple(row[1:])
        for row in table("docs/statistics.md", "metrics", "session spread *s*")
    }

    def shown(kind):
        found = policy_of(kind)
        sizes = (found.session_spread, math.expm1(found.limit))
        return tuple(f"{100 * size:.3g} %" for size in sizes)

    assert rows == {kind.value: shown(kind) for kind in PolicyKind}


def a_confirmation(spread, *, suspects):
    """After 18 pairs of exactly this standard deviation, without any history."""
    unit = math.sqrt(sum((i - 8.5) ** 2 for i in range(18)) / 17)
    found = Confirmation(
        policy=policy_of(PolicyKind.TIME),
        alpha=share_alpha(suspects),
        prior_variance=0.0,
        prior_df=0.0,
    )
    # Looks come early: only the last of the pairs is added when all are known.
    found._differences.extend(spread * (i - 8.5) / unit for i in range(18))
    return found


@pytest.mark.parametrize("row", table("docs/accuracy.md", "pairs differ by (standard deviation)"))
def test_what_pairs_can_see_is_what_the_table_says(row):
    spread = float(row[0].removesuffix(" %")) / 100
    seen = [
        math.expm1(a_confirmation(spread, suspects=suspects).smallest_detectable())
        for suspects in (1, 5)
    ]

    assert row[1:] == [f"{size:.1%}".replace("%", " %") for size in seen]


def test_the_verdicts_are_all_there_worst_first():
    rows = table("docs/verdicts.md", "verdict", "meaning")

    assert [row[0] for row in rows] == [verdict.value for verdict in Verdict]


def test_a_report_with_one_row_ends_as_its_verdict_says():
    for verdict, _, codes in table("docs/verdicts.md", "verdict", "meaning"):
        make = a_numerics if verdict == "numerics_changed" else a_change
        row = make(verdict=Verdict(verdict), gate=True)
        if verdict in {"failed", "new"}:
            row = an_uncompared(verdict=Verdict(verdict))
        if verdict == "likely_slower":
            row = msgspec.structs.replace(row, code=Code.SPREAD)

        assert str(int(rules.exit_code([row], VALID))) in re.findall(r"[0-9]", codes), verdict


def test_every_reason_code_is_explained():
    explained = [code.strip("`") for code, *_ in table("docs/verdicts.md", "code", "meaning")]

    assert sorted(explained) == sorted(code.value for code in Code)
    assert len(explained) <= 25


def test_every_reason_to_distrust_a_machine_is_explained():
    rows = {row[0]: row[1] for row in table("docs/machine.md", "code")}

    assert rows == {doubt.code: doubt.status.value for doubt in Doubt}


def test_every_reason_to_distrust_a_machine_can_be_given():
    sources = [
        *(ROOT / "ci_perf/measuring").rglob("*.py"),
        *(ROOT / "ci_perf/session").rglob("*.py"),
        ROOT / "ci_perf/judging/canaries.py",
    ]
    code = "".join(path.read_text(encoding="utf-8") for path in sources)

    assert [doubt for doubt in Doubt if f"Doubt.{doubt.name}" not in code] == []


def test_every_withheld_variable_is_named():
    for name in child_environment.WITHHELD:
        assert f"`{name}`" in text("docs/measuring.md")


def test_every_extra_that_the_action_installs_without_hashes_is_named():
    extras = set(re.findall(r"\$root\[(\w+)\]", text("action/install.sh")))

    assert extras
    assert all(f"`[{extra}]`" in text("docs/security.md") for extra in extras)


def test_every_knob_of_a_process_is_named():
    workload = PlannedWorkload(
        id="it", file="it.py", description="", parameters={}, protocol=Protocol()
    )

    for name in child_environment.build_task_environment({}, workload, Path("cache")):
        assert f"`{name}`" in text("docs/measuring.md")


# --- examples


@pytest.mark.parametrize("example", blocks("CONTRIBUTING.md", "python"))
def test_the_examples_for_contributors_are_our_own_code(example):
    wanted = _stripped(example)
    ours = [*(ROOT / "ci_perf").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]

    assert any(wanted in _stripped(path.read_text(encoding="utf-8")) for path in ours)


def _stripped(code):
    return "\n".join(line.strip() for line in code.strip().splitlines() if line.strip())


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_python_example_is_python(document):
    for example in blocks(document.relative_to(ROOT), "python"):
        ast.parse(example)
