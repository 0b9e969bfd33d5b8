"""What a node runs in tests of the fleet: a unit that sleeps, and then behaves well or badly.

    python fleet_unit.py BEHAVIOUR SECONDS RUN TARGET

RUN is a run that somebody has prepared, TARGET where it belongs. Knows nothing of ci_perf.
"""

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path


def refuse_node():
    """Leave what `ci-perf run` leaves where the node is not of its class."""
    said = {"tool": {"version": "0"}, "unit": "u", "reason": "cpu_model: expected 'x', found 'y'"}
    Path(target).write_text(json.dumps({"type": "node_refusal", **said}))
    sys.exit(3)


behaviour, seconds, run, target = sys.argv[1], float(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
folder = Path(target).parent
# Where a test can look: the folder of an attempt goes with a node that shares none.
notes = Path(os.environ.get("FLEET_UNIT_NOTES", folder))
(notes / "environment.json").write_text(json.dumps(dict(os.environ)))
with (notes / "pids").open("a") as pids:
    pids.write(f"{os.getpid()}\n")
time.sleep(seconds)
match behaviour:
    case "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    case "refuse":
        sys.exit("error: no such suite")
    case "hang":
        time.sleep(1000)
    case "garbage":
        Path(target).write_text("{")
    case "nan":
        Path(target).write_text(run.read_text().replace('"duration_s": 60.0', '"duration_s": NaN'))
    case "huge":
        with Path(target).open("wb") as file:
            file.truncate(51 * 2**20)
    case "link":
        Path(target).symlink_to("/etc/passwd")
    case "pipe":
        os.mkfifo(target)
    case "foreign":
        receipt = {"unit": "foreign", "nonce": "0", "node": "n", "exit_code": 0, "duration_s": 1}
        (folder / "receipt.json").write_text(json.dumps({**receipt, "output": ""}))
        os.kill(os.getppid(), signal.SIGKILL)
    case "wait":  # until a test has seen enough
        while not (notes.parent / "go").exists():
            time.sleep(0.05)
        shutil.copyfile(run, target)
    case "vanish":  # and its agent with it, as if the node had lost power
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(1000)
    case "vanish_once" if not (notes.parent / "vanished").exists():
        (notes.parent / "vanished").touch()
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(1000)
    case "quit_early":  # the engine's job ends, and nothing is left: as of a node without Python
        os.kill(os.getppid(), signal.SIGTERM)
        time.sleep(1000)
    case "refuse_node":
        refuse_node()
    case "refuse_node_once" if not (folder.parent / "refused").exists():
        (folder.parent / "refused").touch()
        refuse_node()
    case _:
        shutil.copyfile(run, target)
