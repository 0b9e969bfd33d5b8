"""What a Python does that is asked to run `ci-perf run --unit UNIT --output TARGET`: no measuring.

In the folder above that of the fleet run lie `screen.json` and `pairs.json`, what a whole session
would have measured in each wave; those of a class, `screen.CLASS.json`. The workloads of the unit
are taken from there. With `hang.screen` or `hang.pairs` in that folder, units of that wave wait.
"""

import json
import sys
import time
from pathlib import Path

arguments = sys.argv[1:]
unit_file, target = (
    Path(arguments[arguments.index(option) + 1]) for option in ("--unit", "--output")
)
unit = json.loads(unit_file.read_text())
folder = next(parent for parent in target.parents if (parent / "screen.json").exists())
(target.parent / "arguments.json").write_text(json.dumps(arguments))
kind = "pairs" if unit["suspected"] else "screen"
if (folder / f"hang.{kind}").exists():
    (folder / "hangs").touch()
    time.sleep(1000)
of_class = folder / f"{kind}.{unit['machine_class']}.json"
run = json.loads((of_class if of_class.exists() else folder / f"{kind}.json").read_text())
for part in ("measured", "paired"):
    run[part] = [each for each in run[part] if each["workload"] in unit["workloads"]]
if kind == "pairs":
    run["interleaved"]["suspected"] = unit["suspected"]
target.write_text(json.dumps({**run, "unit": unit["id"], "id": f"run-{unit['id']}"}))
