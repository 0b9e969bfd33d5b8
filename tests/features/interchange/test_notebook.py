import subprocess
import sys

import pytest

import ci_perf
from ci_perf.errors import InvalidFileError
from ci_perf.system import files
from tests.runs import a_measured, a_run
from tests.unit.report import shapes


@pytest.mark.parametrize(
    ("document", "shown"),
    [
        (a_run(a_measured("mlp", 1e-3)), "<td>8.00k images/s</td>"),
        (shapes.regressed(), "3\N{NO-BREAK SPACE}regressed"),
    ],
)
def test_a_file_is_loaded_with_its_table_and_its_picture(tmp_path, document, shown):
    files.write(tmp_path / "document.json", document)

    loaded = ci_perf.load(tmp_path / "document.json")

    assert loaded.document == document
    assert repr(loaded) == f"Loaded({type(document).__name__})"
    assert len(loaded.to_frame()) > 1
    assert shown in str(loaded._repr_html_())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"type": "baseline"}', "expected 'run' or 'comparison', found 'baseline'"),
        ("{}", "expected the field"),
        ("[1]", "expected object, found array"),
        ("{", "expected a JSON document"),
        ('{"type": "run"}', "expected the field"),
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
