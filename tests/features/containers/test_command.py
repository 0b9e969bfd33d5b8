"""`ci-perf pin` where no engine need be asked; with one: integration/."""

import pytest
from click.testing import CliRunner

from ci_perf.errors import EngineError, UsageError
from ci_perf.features.containers.command import pin_command

SUITE = '[[suites.smoke.workloads]]\nworkload = "nap"\n'


@pytest.fixture
def pin(tmp_path):
    """Pin in a folder whose suite names no image; no engine is on the PATH."""
    (tmp_path / "suite.toml").write_text(SUITE)
    (tmp_path / "nap.py").write_text("")

    def pin(*arguments):
        return CliRunner(env={"PATH": str(tmp_path)}).invoke(
            pin_command,
            ["--workloads", str(tmp_path), *arguments],
            catch_exceptions=False,
        )

    return pin


def test_without_an_image_one_must_be_named(pin, tmp_path):
    with pytest.raises(UsageError) as error:
        pin()

    assert str(error.value) == (
        f"{tmp_path}/suite.toml: $.container.image: expected an image to pin, found none; name "
        "one: `ci-perf pin NAME:TAG`"
    )


def test_without_an_engine_nothing_is_written(pin, tmp_path):
    with pytest.raises(EngineError, match="podman: expected its program on the PATH, found none"):
        pin("perf:dev", "--engine", "podman")

    assert (tmp_path / "suite.toml").read_text() == SUITE
