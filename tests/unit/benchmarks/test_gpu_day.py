"""What fails a day with a GPU, and what its page says."""

import pytest

from benchmarks import gpu_day


def results(**parts):
    return {"date": "2026-01-01", "machine": {"gpu": "one"}, "parts": parts}


def check(*rows):
    return {
        "launches": 12,
        "wall_s": 60.0,
        "budget_s": 30.0,
        "validity": [],
        "seconds_of_part": 61,
        "mean_phases": {"import_s": 4.0},
        "rows": [
            {"workload": workload, "metric": metric, "verdict": verdict, "code": "spread"}
            for workload, metric, verdict in rows
        ],
    }


@pytest.mark.parametrize(
    ("part", "workload", "verdict", "problem"),
    [
        ("planted", "planted.extra=sleep.percent=2", "unchanged", "slower, and called unchanged"),
        ("planted", "planted.extra=sleep.percent=1", "unchanged", ""),
        ("planted", "planted.extra=sleep.percent=5", "regressed", ""),
        ("planted", "planted.extra=nothing", "likely_slower", "unchanged, and called slower"),
        ("planted", "planted.extra=wait", "regressed", ""),
        ("same", "matmul", "regressed", "unchanged, and called slower"),
        ("same", "matmul", "inconclusive", ""),
    ],
)
def test_a_wrong_answer_fails_the_day(part, workload, verdict, problem):
    day = results(**{part: check((workload, "step_time_s", verdict))})

    expected = [f"{part}: {workload} is {problem}"] if problem else []
    assert gpu_day.find_problems(day) == expected


def test_failed_tests_and_parts_fail_the_day():
    failed = {"ran": 2, "skipped": {}, "failures": {"a.py::b": "no"}, "seconds_of_part": 1}
    day = results(tests=failed, monitor={"problem": "it broke"}, doctor={"exit_code": 3})

    problems = ["monitor: it broke", "doctor --deep failed", "a.py::b failed"]
    assert gpu_day.find_problems(day) == problems


def test_the_page_says_what_was_found_and_what_was_not_run():
    failed = {"ran": 2, "skipped": {}, "failures": {"a::b": "a | b"}, "seconds_of_part": 1}
    monitor = {"ratios": {"long": [1.01, 1.02, 1.03]}, "cpu_share": 0.03, "readings_per_s": 5}
    rows = [("matmul", "step_time_s", "regressed"), ("matmul", "first_step_s", "inconclusive")]
    day = results(tests=failed, monitor={**monitor, "seconds_of_part": 2}, same=check(*rows))

    page = gpu_day.page(day)

    assert "1 of 2 tests marked `gpu` passed." in page
    assert r"- failures: `a::b`: a \| b" in page
    assert "| long | +2.00% | +1.00% to +3.00% |" in page
    assert "| `matmul` | step_time_s |  |  |  | regressed (spread) |" in page
    assert "first_step_s" not in page
    assert "**`planted` was not run**" in page


def test_no_folder_and_no_identity_of_the_machine_stand_on_the_page():
    cell = gpu_day._cell('File "/home/me/ci_perf/a.py" of GPU-1f-2e at /tmp/x/y.json')

    assert cell == 'File "a.py" of its UUID at y.json'
