"""`ci-perf check --kernels`: the code of both sides, by real launches whose compiler is a fake.

What a real one generates is in test_generated_kernels.py.
"""

import json

import pytest

from ci_perf.errors import ExitCode
from tests import repositories
from tests.projects import FAST, NAP, NAP_SETTINGS, SLOW, Project

# Leaves a module as Inductor does: one kernel has a constant of the product.
COMPILED = (
    NAP
    + '''
import pathlib, sys, tempfile, types
KERNEL = """
cpp_fused_{name}_0 = async_compile.cpp_pybinding([], r\'\'\'
#include "{folder}/c.h"
auto tmp = {value};
\'\'\')
"""
def note(folder=tempfile.mkdtemp()):
    file = pathlib.Path(folder, "generated.py")
    kernels = {"mul": product.FACTOR, "add": 1}
    texts = (KERNEL.format(name=n, value=v, folder=folder) for n, v in kernels.items())
    file.write_text("\\n".join(texts))
    modules = [types.SimpleNamespace(__file__=str(file))]
    cache = types.SimpleNamespace(modules=modules)
    sys.modules["torch._inductor.codecache"] = types.SimpleNamespace(PyCodeCache=cache)
if hasattr(product, "FACTOR"):
    note()
'''
)


@pytest.fixture
def check(tmp_path):
    """Check a slower head against its base; return how it ended, and the folder of kernels."""

    def run(base, head, *arguments):
        git = repositories.init(tmp_path / "project")
        project = Project(git.root)
        project.workload("nap", COMPILED).suite("nap", settings=NAP_SETTINGS, device="cpu")
        git.commit(product_py=FAST + base)
        git.commit(product_py=SLOW + head)
        fixed = ("--against", "HEAD~1", "--wait", "0s", "--explain", "0s", "--kernels", "kernels")
        return project.run("check", *fixed, *arguments), git.root / "kernels"

    return run


def test_the_folder_has_both_sides_and_the_run_has_names_and_digests_alone(check):
    done, folder = check("FACTOR = 2.5\n", "FACTOR = 1.25\n")

    assert done.code == ExitCode.REGRESSED, done.err + done.out
    assert "2 kernels: 1 with the same code, 1 other" in done.out.replace("\N{NO-BREAK SPACE}", " ")
    assert f"kernels: base 2, head 2; compare them: diff -r {folder}/base {folder}/head" in done.err
    texts = {path.relative_to(folder): path.read_text() for path in folder.rglob("*.cpp")}
    assert {str(path): text for path, text in texts.items()} == {
        f"{side}/nap/cpp_fused_{name}.cpp": f'#include ""\nauto tmp = {value};\n'
        for side, name, value in (
            *(("base", "mul", 2.5), ("base", "add", 1)),
            *(("head", "mul", 1.25), ("head", "add", 1)),
        )
    }
    kept = (folder.parent / "run.json").read_text()
    (paired,) = json.loads(kept)["paired"]
    assert len(paired["pairs"][0]["head"]["generated"]["kernels"]) == 2
    assert "auto tmp" not in kept


def test_a_check_that_compiled_nothing_says_so_and_judges_as_ever(check):
    done, folder = check("", "")

    assert done.code == ExitCode.REGRESSED, done.err + done.out
    assert "note: no kernels of nap: its launches show no code of torch.compile\n" in done.err
    assert f"kernels: none in {folder}\n" in done.err
    assert "torch.compile" not in done.out


def test_equal_kernels_clear_nothing(check):
    done, _ = check("FACTOR = 2.5\n", "FACTOR = 2.5\n")

    assert done.code == ExitCode.REGRESSED, done.err + done.out
    assert "2 kernels: 2 with the same code" in done.out.replace("\N{NO-BREAK SPACE}", " ")


def test_what_is_no_empty_folder_is_refused_before_any_launch(tmp_path):
    project = Project(repositories.init(tmp_path / "project").root)
    project.workload("nap", NAP).suite("nap", settings=NAP_SETTINGS, device="cpu")
    (project.root / "full").mkdir()
    (project.root / "full/kept.txt").write_text("kept")

    refused = project.run("check", "--against", "HEAD", "--kernels", "full")
    alone = project.run("check", "--kernels", "new")

    assert "--kernels: expected an empty or a new folder" in refused.err
    assert "--kernels: expected --against REF" in alone.err
    assert [refused.code, alone.code] == [ExitCode.USAGE] * 2
    assert not (project.root / "run.json").exists()
