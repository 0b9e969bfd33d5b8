"""Which files of a harness belong together."""

from pathlib import Path

import pytest

from ci_perf.errors import UsageError
from ci_perf.features.interchange.judge import HarnessFiles, judge


@pytest.mark.parametrize(
    ("harness", "said"),
    [
        (HarnessFiles(), "expected SAMPLES, or --from TOOL"),
        (HarnessFiles(head=(Path("new.json"),)), "expected --from TOOL, which says who wrote them"),
        (HarnessFiles(tool="nose"), "--from: expected one of pytest-benchmark"),
        (
            HarnessFiles(tool="pyperf", head=(Path("new.json"),)),
            "expected --base FILE and --head FILE",
        ),
    ],
)
def test_files_that_do_not_belong_together_are_refused(harness, said):
    with pytest.raises(UsageError, match=said):
        judge([], harness, limit=None, fail_on="proven", notify=print)
