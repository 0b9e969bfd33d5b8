"""Tools with many benchmarks: a file of each tool, and what is refused."""

import json
import os
import re
from pathlib import Path

import pytest

from ci_perf.features.formats import benchmarks
from ci_perf.measuring.written_numbers import WrittenNumbers

FILES = Path(__file__).parent / "files"


def time(*values):
    return WrittenNumbers(values=values, kind="time")


@pytest.fixture
def write(tmp_path):
    def write_changed(name, change):
        """Write a file of the tool after a change of its document."""
        document = json.loads((FILES / name).read_text())
        change(document)
        path = tmp_path / name
        path.write_text(json.dumps(document))
        return path

    return write_changed


@pytest.fixture
def write_row(write):
    """Write a file of asv with another row of results."""
    return lambda row: write(
        "asv-0.6.6.json", lambda document: document["results"].update({"b.time_x": row})
    )


def test_pytest_benchmark_has_the_time_of_every_round():
    readings = benchmarks.read_pytest_benchmark(FILES / "pytest-benchmark-5.3.1.json")

    assert [*readings] == [
        "test_speed.py__test_sort_100_",
        "test_speed.py__test_sort_200_",
        "test_speed.py__test_join",
    ]
    assert readings["test_speed.py__test_join"] == time(
        7.68399991102342e-07, 6.872999961160531e-07, 6.761999998161627e-07
    )


def test_a_saved_file_of_pytest_benchmark_has_medians():
    readings = benchmarks.read_pytest_benchmark(FILES / "pytest-benchmark-5.3.1-saved.json")

    assert readings == {
        "test_speed.py__test_sort_100_": time(7.623999977113271e-07),
        "test_speed.py__test_sort_200_": time(1.3305000038599247e-06),
        "test_speed.py__test_join": time(6.841999947937438e-07),
    }


def test_asv_has_a_benchmark_for_each_combination_of_parameters():
    # The fourth combination was skipped.
    assert benchmarks.read_asv(FILES / "asv-0.6.6.json") == {
        "speed.Sorting.time_sort_200___sorted__": time(
            1.8640000689629233e-06, 4.18699983129045e-06, 3.907000063918531e-06
        ),
        "speed.Sorting.time_sort_200___reversed__": time(
            5.610000016531558e-06, 3.827000000455882e-06, 3.6970000110159162e-06
        ),
        "speed.Sorting.time_sort_400___sorted__": time(
            7.403000154226902e-06, 6.5219999214605195e-06, 5.690000079994206e-06
        ),
        "speed.TimeSuite.time_format": time(
            1.1839649705773893e-06, 1.013735345397549e-06, 1.2362076705167985e-06
        ),
        "speed.mem_list": WrittenNumbers(values=(8056.0,), kind="bytes"),
        "speed.peakmem_list": WrittenNumbers(values=(36810752.0,), kind="bytes"),
        "speed.time_join": time(
            2.6466841075896294e-05, 2.3627354523423912e-05, 1.3330827628424298e-05
        ),
        "speed.track_loss": WrittenNumbers(values=(0.25,)),
    }


def test_asv_without_samples_has_its_result(write):
    def remove_samples(document):
        document["results"] = {"speed.time_join": [[2.5e-05], []]}

    path = write("asv-0.6.6.json", remove_samples)

    assert benchmarks.read_asv(path) == {"speed.time_join": time(2.5e-05)}


def test_of_a_folder_of_asv_the_newest_results_are_read(write, tmp_path):
    newest = write("asv-0.6.6.json", lambda _: None)
    for name in ("old.json", "machine.json", "benchmarks.json"):
        (tmp_path / name).write_text("{}")
    os.utime(tmp_path / "old.json", (1, 1))
    os.utime(newest, (2, 2))

    assert benchmarks.read_asv(tmp_path) == benchmarks.read_asv(newest)


def test_a_folder_without_results_of_asv_is_refused(tmp_path):
    (tmp_path / "machine.json").write_text("{}")

    with pytest.raises(ValueError, match="expected results of asv in the folder, found none"):
        benchmarks.read_asv(tmp_path)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([[1.0], [["1", "0"]]], "b.time_x: expected 2 results, one for each combination"),
        ([[1.0], [["1", "0"]] * 100], "one for each combination of parameters, found 1"),
        ([[1.0], [["a" * 20_000]]], "expected a name of at most 10,000 characters"),
        (["x", []], "expected results of this format, found: Expected `array | null`"),
    ],
)
def test_a_row_that_asv_did_not_write_is_refused(row, expected, write_row):
    path = write_row(row)

    with pytest.raises(ValueError, match=re.escape(expected)):
        benchmarks.read_asv(path)


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ([None, []], "b.time_x"),
        ([None, [["1", "0"]]], "b.time_x"),
        ([[1.0, None], [["1", "0"]]], "b.time_x_0_"),
    ],
)
def test_a_benchmark_of_asv_that_failed_keeps_its_name(row, name, write_row):
    readings = benchmarks.read_asv(write_row(row))

    assert readings[name] == WrittenNumbers(failure="the benchmark failed")


def test_another_version_of_asv_is_refused(write):
    path = write("asv-0.6.6.json", lambda document: document.update(version=1))

    with pytest.raises(ValueError, match=r"in version 2, found 1; .*`asv update`"):
        benchmarks.read_asv(path)


def test_nvbench_has_the_median_time_of_each_state_or_else_its_mean():
    # The state of `T=I8` was skipped.
    assert benchmarks.read_nvbench(FILES / "nvbench.json") == {
        "copy.Device=0_T=I32": time(0.0010021),
        "copy.Device=0_T=F64": time(0.002),
        "host_only": time(0.25),
    }


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"is_skipped": True, "skip_reason": "Unexpected error: out of memory"},
            "Device=0 T=I32: expected a time, found: Unexpected error: out of memory",
        ),
        ({"summaries": []}, "Device=0 T=I32: expected a summary nv/cold/time/gpu/mean, found none"),
    ],
)
def test_a_state_of_nvbench_without_a_time_is_refused(change, expected, write):
    path = write(
        "nvbench.json", lambda document: document["benchmarks"][0]["states"][0].update(change)
    )

    with pytest.raises(ValueError, match=expected):
        benchmarks.read_nvbench(path)


def test_google_benchmark_has_the_time_of_every_repetition_in_seconds():
    readings = benchmarks.read_google_benchmark(FILES / "google-benchmark-1.9.5.json")

    # One reports in microseconds, the other in nanoseconds.
    assert readings == {
        "sum_million": time(
            pytest.approx(455.42257377900275e-6),
            pytest.approx(592.1944078192654e-6),
            pytest.approx(457.9274051160697e-6),
        ),
        "join": time(
            pytest.approx(4125.046730041504e-9),
            pytest.approx(2515.602111816406e-9),
            pytest.approx(2871.68025970459e-9),
        ),
    }


def test_google_benchmark_with_aggregates_alone_has_the_median():
    readings = benchmarks.read_google_benchmark(FILES / "google-benchmark-1.9.5-aggregates.json")

    assert readings == {
        "sum_million": time(pytest.approx(512.8271439496209e-6)),
        "join": time(pytest.approx(2591.604354245179e-9)),
    }


def test_an_error_of_google_benchmark_keeps_its_name():
    readings = benchmarks.read_google_benchmark(FILES / "google-benchmark-1.9.5-error.json")

    assert readings["broken"].failure.startswith("no device")
    assert readings["broken"].values == ()


def test_a_skipped_google_benchmark_is_left_out(write):
    def skip(document):
        for entry in document["benchmarks"]:
            entry["skipped"] = entry["run_name"] == "join"

    path = write("google-benchmark-1.9.5.json", skip)

    assert [*benchmarks.read_google_benchmark(path)] == ["sum_million"]


def test_hyperfine_has_the_times_of_each_command():
    assert benchmarks.read_hyperfine(FILES / "hyperfine-1.15.0.json") == {
        "nap": time(0.016286248, 0.011844128, 0.011394900000000001, 0.011273784),
        "sleep_0.02": time(0.021295495, 0.027889086, 0.028023075, 0.028269696),
    }


def test_two_commands_of_one_name_are_refused(write):
    def rename(document):
        document["results"][0]["command"] = "sleep_0.02"

    path = write("hyperfine-1.15.0.json", rename)

    with pytest.raises(ValueError, match=r"found 'sleep_0\.02' and 'sleep 0\.02'"):
        benchmarks.read_hyperfine(path)
