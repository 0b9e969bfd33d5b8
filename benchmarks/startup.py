"""How long `ci-perf --help` takes, against `python -c "import click"` in the same minutes.

    python benchmarks/startup.py [ROUNDS]

Prints a table; the claim is a ratio below 3. The two alternate, and the medians are compared, so
that a busy machine slows both.
"""

import statistics
import subprocess
import sys
import time

PROGRAMS = {
    'python -c "import click"': ["-c", "import click"],
    "ci-perf --help": ["-m", "ci_perf", "--help"],
    "ci-perf compare --help": ["-m", "ci_perf", "compare", "--help"],
    "ci-perf run --help": ["-m", "ci_perf", "run", "--help"],
}
CLAIM = 3.0


def seconds(arguments: list[str]) -> float:
    """Time one fresh process."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main(rounds: int) -> int:
    """Print the table; fail when the claim does not hold."""
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(rounds):
        for name, arguments in PROGRAMS.items():
            times[name].append(seconds(arguments))
    medians = {name: statistics.median(found) for name, found in times.items()}
    reference = next(iter(medians.values()))
    print(f"| program | median of {rounds} | ratio |\n|:--|--:|--:|")
    for name, median in medians.items():
        print(f"| `{name}` | {median * 1e3:.0f} ms | {median / reference:.2f} |")
    return int(medians["ci-perf --help"] >= CLAIM * reference)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20))
