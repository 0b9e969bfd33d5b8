"""Files of runs and of prices: what is refused with its place, and what is only noted."""

from datetime import date

import msgspec
import pytest

from ci_perf.errors import InvalidFileError, UsageError
from ci_perf.gate import hardware
from ci_perf.model.run import UNKNOWN_COMMIT, Source
from ci_perf.system import files
from tests.hardware import A100, H100, L4, PRICES, a_gpu, a_machine_run
from tests.runs import an_environment

TODAY = date(2026, 11, 23)


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Write runs into files, as `1.json` and so on, and prices.toml; compare them."""
    monkeypatch.chdir(tmp_path)

    def compare(*runs, prices=PRICES):
        paths = []
        for number, run in enumerate(runs, 1):
            paths.append(tmp_path / f"{number}.json")
            files.write(paths[-1], run)
        file = tmp_path / "prices.toml"
        file.write_text(prices or "")
        return hardware.compare(paths, file if prices else None, today=TODAY)

    return compare


def test_each_price_of_a_machine_is_a_class(written):
    answer = written(A100, H100)

    assert [(each.name, each.price.per_hour) for each in answer.classes] == [
        ("nvidia-a100", 2.0),
        ("h100-reserved", 3.0),
        ("nvidia-h100", 5.0),
    ]
    assert answer.currency == "EUR"


def test_a_price_that_is_old_is_named(written):
    assert written(A100, H100).notes == (
        "the price of h100-reserved is of 2026-06-01, 175 days ago: see whether it still holds",
    )


def test_a_machine_without_a_price_has_none(written):
    answer = written(A100, H100, L4)

    assert answer.classes[-1].price is None
    assert any("prices.toml has no price of nvidia-l4" in note for note in answer.notes)


def test_without_prices_speed_alone_is_compared(written):
    answer = written(A100, H100, prices=None)

    assert [each.name for each in answer.classes] == ["nvidia-a100", "nvidia-h100"]
    assert (answer.currency, answer.notes) == ("", ())


def test_runs_of_one_machine_count_together(written):
    again = a_machine_run("NVIDIA H100", 1.0, id="again")

    (of_h100,) = written(H100, again, prices=None).classes

    assert (of_h100.runs, of_h100.launches) == (2, 8)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (("per_hour = 2.0", "per_hour = 0"), r"\$\.price\.nvidia-a100\.per_hour"),
        (("per_hour = 2.0", "per_hour = -1.5"), r"\$\.price\.nvidia-a100\.per_hour"),
        (("per_hour = 2.0", "per_hour = nan"), r"\$\.price\.nvidia-a100\.per_hour"),
        (("per_hour = 2.0", "per_hour = inf"), r"\$\.price\.nvidia-a100\.per_hour"),
        (('currency = "EUR"', 'currency = "euro"'), r"\$\.currency"),
        (("per_hour = 2.0", 'per_hour = 2.0\ncurrency = "USD"'), r"\$\.price\.nvidia-a100"),
        (('as_of = "2026-11-01"', "as_of = 2027-11-01"), "as_of: expected a day that has come"),
        (('as_of = "2026-11-01"', 'as_of = "2026-02-30"'), "as_of: expected a day, found"),
        (('as_of = "2026-11-01"', "as_of = 2026-11-01T10:00:00"), r"nvidia-a100\.as_of"),
        (('as_of = "2026-11-01"\n', ""), "as_of"),
        (("price.nvidia-a100", "price.nvidia-a10"), r"\$\.price\.nvidia-a10: .*nvidia-a100"),
        (('"nvidia-h100"', '"nvidia-h1000"'), r"\$\.price\.h100-reserved\.machine: expected"),
        ((PRICES, "currency"), "expected TOML"),
        ((PRICES, 'currency = "EUR"\n[price]'), r"\$\.price"),
    ],
)
def test_prices_that_say_nothing_are_refused_with_their_place(written, change, place):
    with pytest.raises(InvalidFileError, match=rf"prices\.toml.*{place}"):
        written(A100, H100, prices=PRICES.replace(change[0], change[1], 1))


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"suite": "smoke", "id": "b"}, "2.json: expected a run of the suite standard"),
        ({"commit": "f" * 40, "id": "b"}, "2.json: expected a run of the commit d4e5f6a7"),
        ({"id": "a"}, "2.json: expected a run that is not there yet, found run a"),
    ],
)
def test_runs_that_mean_other_things_are_refused(written, other, said):
    more = {"suite": "standard"} | other

    with pytest.raises(UsageError, match=said):
        written(
            a_machine_run("NVIDIA A100", 1.0, suite="standard", id="a"),
            a_machine_run("NVIDIA H100", 1.0, **more),
        )


def test_machines_of_one_name_that_differ_are_not_mixed(written):
    small = msgspec.structs.replace(a_gpu("NVIDIA H100"), gpu_memory_bytes=40 * 2**30)
    other = msgspec.structs.replace(H100, environment=an_environment(hard=small), id="small")

    with pytest.raises(UsageError, match=r"2\.json: .* found one of the same name nvidia-h100"):
        written(H100, other, prices=None)


def test_no_run_is_wrong_use():
    with pytest.raises(UsageError, match=r"expected RUN\.json"):
        hardware.compare([], None, today=TODAY)


def test_what_weakens_the_comparison_is_noted(written):
    unknown = Source(commit=UNKNOWN_COMMIT, branch=UNKNOWN_COMMIT, dirty=True)
    notes = written(A100, msgspec.structs.replace(H100, source=unknown), prices=None).notes

    assert [note.partition("2.json ")[2] for note in notes] == [
        "was measured with uncommitted changes",
        "does not know its commit: it may be of other code",
    ]
