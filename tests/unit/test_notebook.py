import subprocess
import sys

import pytest

import ci_perf
from ci_perf.errors import InvalidFileError
from ci_perf.notebook import LoadedComparison, LoadedRun
from ci_perf.system import files
from tests.runs import a_measured, a_run
from tests.unit.report import shapes


def test_a_run_is_loaded_with_its_table_and_its_picture(tmp_path):
    run = a_run(a_measured("mlp", 1e-3))
    files.write(tmp_path / "run.json", run)

    loaded = ci_perf.load(tmp_path / "run.json")

    assert isinstance(loaded, LoadedRun)
    assert loaded.run == run
    assert set(loaded.to_frame()["workload"]) == {"mlp"}
    assert "<td>mlp</td>" in loaded._repr_html_()
    assert repr(loaded) == f"LoadedRun({run.id}, suite smoke, 1 measured)"


def test_a_comparison_is_loaded_with_its_table_and_its_picture(tmp_path):
    comparison = shapes.regressed()
    files.write(tmp_path / "comparison.json", comparison)

    loaded = ci_perf.load(str(tmp_path / "comparison.json"))

    assert isinstance(loaded, LoadedComparison)
    assert loaded.comparison == comparison
    assert len(loaded.to_frame()) == len(comparison.rows)
    assert "3 regressions" in loaded._repr_html_()
    assert repr(loaded) == "LoadedComparison(0123456789ab, suite standard, failed)"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"type": "baseline"}', "expected 'run', 'comparison' or 'history', found 'baseline'"),
        ("{}", "missing required field type"),
        ("[1]", "expected object, found array"),
        ("{", "expected a JSON document"),
        ('{"type": "run"}', "missing required field"),
        ('{"type": "run", "schema_version": 99}', "upgrade"),
    ],
)
def test_another_file_is_refused_with_what_was_expected(tmp_path, text, found):
    path = tmp_path / "other.json"
    path.write_text(text)

    with pytest.raises(InvalidFileError) as error:
        ci_perf.load(path)

    assert str(error.value).startswith(str(path))
    assert found in str(error.value)


def test_importing_the_package_stays_light():
    program = "import ci_perf, sys; print({'msgspec', 'jinja2', 'pandas'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "set()"
