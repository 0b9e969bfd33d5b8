"""A ci-perf that notes how it was called, and a Python that notes what it was to install."""

from pathlib import Path

import pytest

TOKEN = "ghs_a-token-of-this-job"

# Notes each call, writes what `check` is asked to write, says what `publish` says, ends as told.
FAKE_CI_PERF = """\
#!/usr/bin/env bash
[ "$1" != github ] || shift
printf '%s\\n' "$@" > "$RECORD.$1"
printf '%s' "${GITHUB_TOKEN:-}" > "$RECORD.$1.token"
for argument in "$@"; do
  case "$argument" in
    --output=* | --report=* | --comparison=*) files+=("${argument#*=}") ;;
  esac
done
for file in "${files[@]}"; do
  [ -z "$WITH_RESULTS" ] || echo "# slower" > "$file"
done
if [ "$1" = publish ]; then
  printf 'verdict=regressed\\nexit-code=1\\n' >> "$GITHUB_OUTPUT"
  echo "# shown" >> "$GITHUB_STEP_SUMMARY"
fi
exit "$ENDS_WITH"
"""


@pytest.fixture
def recorded(job, tmp_path):
    """Make a job whose ci-perf notes its calls and ends as told."""

    def make(*, ends_with=0, with_results=True, **event):
        return job(
            ci_perf=FAKE_CI_PERF,
            github={"event_name": "pull_request", "run_id": "42", **event},
            token=TOKEN,
            RECORD=str(tmp_path / "record"),
            ENDS_WITH=str(ends_with),
            WITH_RESULTS="yes" if with_results else "",
        )

    return make


def called(job, command):
    """How ci-perf was called with a command."""
    return Path(f"{job.machine['RECORD']}.{command}").read_text().splitlines()


# Notes what it is asked; makes a copy of itself where an environment is to be.
FAKE_PYTHON = """\
#!/bin/sh
echo "$@" >> "$RECORD"
for folder in "$@"; do :; done
[ "$3" = venv ] || exit 0
mkdir -p "$folder/bin" && cp "$0" "$folder/bin/python"
printf '#!/bin/false\\n' > "$folder/bin/ci-perf"
chmod +x "$folder/bin/ci-perf"
"""


@pytest.fixture
def bare(job, tmp_path):
    """A job on a runner without ci-perf, whose Python only notes what it is asked."""
    python = tmp_path / "python"
    python.write_text(FAKE_PYTHON)
    python.chmod(0o755)
    return job(ci_perf=None, PATH="/usr/bin:/bin", RECORD=str(tmp_path / "record"))
