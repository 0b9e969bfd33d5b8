"""What fails a day with a GPU, and what its page says."""

import json
from pathlib import Path

import pytest

from benchmarks import gpu_day

DOCUMENT = Path(__file__).parents[3] / "docs/gpu-day.md"


def results(**parts):
    return {"date": "2026-01-01", "machine": {"device": "cuda", "gpu": "one"}, "parts": parts}


def check(planted, *verdicts):
    rows = [{"workload": "w", "metric": "step_time_s", "verdict": each} for each in verdicts]
    rows.append({"workload": "w", "metric": "first_step_s", "verdict": "regressed"})
    new = {"workload": "w", "metric": "", "verdict": "new"}
    return {"rows": [*rows, new], "planted": planted}


@pytest.mark.parametrize(
    ("part", "problem"),
    [
        (check(2, "unchanged"), ""),
        (check(3, "unchanged"), "slower, and called unchanged"),
        (check(5, "regressed"), ""),
        (check(0, "likely_slower"), "unchanged, and called slower"),
        (check(0, "inconclusive"), ""),
        (check(None, "regressed"), ""),
        ({"verdicts": ["unchanged", "regressed"], "planted": 0}, "unchanged, and called slower"),
        ({"digests": [["a"], ["a"], ["b"]]}, ""),
        ({"digests": [["a"], ["a"], ["a"]]}, "expected digests that an edit alone changes"),
        ({"digests": [["a"], ["c"], ["b"]]}, "expected digests that an edit alone changes"),
        ({"digests": [[], [], []]}, "expected digests that an edit alone changes"),
        ({"problem": "it broke"}, "it broke"),
        ({"rows": [], "failed": ["w: no memory"]}, "w: no memory"),
        ({"exit_code": 3, "deep": []}, "a check of the machine failed"),
        ({"not_yet": "one card"}, ""),
    ],
)
def test_a_wrong_answer_fails_the_day(part, problem):
    expected = [f"one: {problem}"] if problem else []

    assert gpu_day.find_problems(results(one=part)) == expected


def test_the_error_of_both_kinds_of_pairs_is_that_of_equal_time():
    launch = {"differences": [0.0, 0.02], "seconds": 60}
    resident = {"differences": [0.0, 0.02], "seconds": 240}

    told = gpu_day.tell_pairs({"launch": launch, "resident": resident})

    assert "launch pairs +1.01% ± 1.00% (2 in 60 s)" in told
    assert "resident pairs +1.01% ± 2.00%" in told


def test_a_part_without_an_answer_is_tried_again_and_says_not_yet(tmp_path):
    paths = (tmp_path / "day.json", tmp_path / "day.md")
    for minutes in (0, 1):
        assert gpu_day.main(["forks"], "cuda", minutes, *paths) == 0

    page = paths[1].read_text()
    assert "| Forked launches | *not yet*: a launch is forked on a CPU only" in page
    assert page.count("*not yet*") == len(gpu_day.PARTS)
    day = json.loads(paths[0].read_text())
    paths[0].write_text(json.dumps(day | {"machine": {"gpu": "another"}}))
    with pytest.raises(SystemExit, match="expected results of this machine"):
        gpu_day.main(["forks"], "cuda", 1, *paths)


def test_an_answer_is_kept_and_a_failure_is_told_without_folders_and_identities():
    said = 'File "/home/me/ci_perf/a.py" of GPU-1f-2e at /tmp/x/y.json'
    page = gpu_day.page(results(doctor={"told": "all | passed"}, forks={"problem": said}))

    assert r"(`doctor --deep`)? | all \| passed |" in page
    assert "| Forked launches | failed |" in page
    assert '- **forks: File "a.py" of its UUID at y.json**' in page


def test_the_document_has_a_row_for_each_part():
    text = DOCUMENT.read_text(encoding="utf-8")

    assert [part.question for part in gpu_day.PARTS.values() if part.question not in text] == []
