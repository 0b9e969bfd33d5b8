# Finds a ci-perf on the PATH, or installs this one: `install.sh measure|history|report`.
#
# Python is started with -P: a file `pip.py` in the checkout, or in a downloaded artifact, must not be
# taken for pip.
set -eo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
python="${INPUT_PYTHON:-python3}"

if ! command="$(command -v ci-perf)"; then
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ci-perf needs Python 3.11 or newer, found " + sys.version.split()[0] + "; name another one with the input `python`")'
  folder="$RUNNER_TEMP/ci-perf"
  pip=("$folder/bin/python" -P -m pip install --quiet --disable-pip-version-check)
  runner="${INPUT_RUNNER:-${CI_PERF_CHECK_RUNNER:-local}}"
  beside=()
  while IFS= read -r line; do
    if [ -n "$line" ]; then beside+=("$line"); fi
  done <<< "$INPUT_INSTALL"
  if [ "$1" = measure ] && [ "$runner" = local ]; then
    "$python" -P -m venv --clear --system-site-packages "$folder"
    "${pip[@]}" "$root[measure]" "${beside[@]}"
  elif [ "$1" = measure ]; then
    if [ "${#beside[@]}" -gt 0 ]; then
      echo "install: expected nothing with runner $runner, because its image holds what is measured" >&2
      exit 2
    fi
    # torch is in the image; only the monitor's library is needed beside the engine.
    "$python" -P -m venv --clear "$folder"
    "${pip[@]}" "$root[host]"
  elif [ "$1" = history ]; then
    # No token: versions are enough. It looks for change points, too.
    "$python" -P -m venv --clear "$folder"
    "${pip[@]}" --constraint "$root/constraints.txt" "$root[history]"
  else
    # Beside a token: every file that is installed is known by its hash.
    "$python" -P -m venv --clear "$folder"
    "${pip[@]}" --require-hashes --only-binary :all: --requirement "$root/requirements/report.txt"
    "${pip[@]}" --no-deps --no-index --no-build-isolation "$root"
  fi
  command="$folder/bin/ci-perf"
fi
printf 'command=%s\n' "$command" >> "$GITHUB_OUTPUT"
