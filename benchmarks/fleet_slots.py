"""How much faster eight slots are than one: `python -m benchmarks.fleet_slots`.

Real processes that sleep, on slots of this machine, through ledger, journal and agent.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str]) -> int:
    """Print the figures; exit code 1 where a unit was not measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--units", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=20.0)
    asked = parser.parse_args(arguments)
    from tests.fleets import a_task, kinds, run_fleet

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tasks = [
            a_task(f"u{number}", "measure", asked.seconds, folder=folder)  # type: ignore[no-untyped-call]
            for number in range(asked.units)
        ]
        start = time.monotonic()
        result, _ = run_fleet(folder, tasks, nodes=asked.slots)  # type: ignore[no-untyped-call]
        wall_s = time.monotonic() - start
    rounds = -(-asked.units // asked.slots)
    own_s = (wall_s - rounds * asked.seconds) / rounds
    print(
        f"{asked.units} units of {asked.seconds:g} s on {asked.slots} slots: {wall_s:.1f} s, "
        f"{asked.units * asked.seconds / wall_s:.2f} times as fast as one slot could be; "
        f"own cost {own_s:.2f} s per unit of a slot"
    )
    measured: dict[str, str] = kinds(result)  # type: ignore[no-untyped-call]
    return int(set(measured.values()) != {"measured"})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
