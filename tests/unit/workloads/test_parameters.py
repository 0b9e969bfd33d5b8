"""Parameters of a workload: defaults, and an error that names the wrong one."""

from dataclasses import dataclass
from typing import Literal

import pytest

import _parameters


@dataclass(frozen=True, kw_only=True)
class Parameters:
    model: Literal["tiny", "base"] = "base"
    batch: _parameters.AtLeastOne = 8
    workers: _parameters.AtLeastZero = 0
    rate: float = 0.1
    padded: bool = False


def test_what_is_not_given_keeps_its_default():
    assert _parameters.read({}, Parameters) == Parameters()


def test_what_is_given_replaces_the_default():
    read = _parameters.read(
        {"model": "tiny", "batch": 1, "workers": 2, "rate": 1, "padded": True}, Parameters
    )

    assert read == Parameters(model="tiny", batch=1, workers=2, rate=1.0, padded=True)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"modle": "tiny"},
            "parameter 'modle': unknown; this workload has: batch, model, padded, rate, workers",
        ),
        ({"model": "huge"}, "parameter 'model': expected one of 'tiny', 'base', found 'huge'"),
        ({"batch": 0}, "parameter 'batch': expected int >= 1, found 0"),
        ({"batch": "8"}, "parameter 'batch': expected int, found '8'"),
        ({"batch": True}, "parameter 'batch': expected int, found True"),
        ({"workers": -1}, "parameter 'workers': expected int >= 0, found -1"),
    ],
)
def test_a_wrong_parameter_is_named_with_what_was_expected_and_found(given, message):
    with pytest.raises(ValueError) as caught:
        _parameters.read(given, Parameters)

    assert str(caught.value) == message


def test_the_first_of_several_parameters_does_not_hide_a_wrong_one():
    with pytest.raises(ValueError, match="parameter 'batch'"):
        _parameters.read({"model": "tiny", "batch": 0}, Parameters)
