"""Which files of a harness belong together."""

import pytest

import ci_perf
from ci_perf.errors import InvalidFileError, UsageError


@pytest.mark.parametrize(
    ("harness", "said"),
    [
        ({}, "expected SAMPLES, or --from TOOL"),
        ({"head": "new.json"}, "expected --from TOOL for these files"),
        ({"tool": "nose"}, "--from: expected one of aiperf, asv"),
        (
            {"tool": "pyperf", "head": "new.json"},
            "expected --base FILE and --head FILE",
        ),
    ],
)
def test_files_that_do_not_belong_together_are_refused(harness, said):
    with pytest.raises(UsageError, match=said):
        ci_perf.judge(**harness)


@pytest.mark.parametrize("limit", [0.0, -0.01, 1.5, float("nan")])
def test_a_limit_that_is_no_share_is_refused(limit):
    with pytest.raises(UsageError, match="limit: expected a share above 0"):
        ci_perf.judge("samples.json", limit=limit)


def test_one_file_of_a_harness_needs_no_list():
    with pytest.raises(InvalidFileError, match=r"nowhere\.json"):
        ci_perf.judge(tool="pyperf", base="nowhere.json", head="nowhere.json")


@pytest.mark.parametrize("call", [ci_perf.judge])
def test_a_word_that_fail_on_does_not_know_is_refused(call):
    with pytest.raises(UsageError, match=r"fail_on: expected one of proven, .* found 'often'"):
        call("samples.json", fail_on="often")
