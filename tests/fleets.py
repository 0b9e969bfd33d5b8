"""Fleets of units that sleep, or behave badly.

`python -m tests.fleets FOLDER ENGINE UNIT=BEHAVIOUR:SECONDS...` is a controller in a process of its
own, which tests interrupt or kill.
"""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

from ci_perf.fleet import controller, fleet_file
from ci_perf.fleet.controller import FleetOptions, FleetTask
from ci_perf.fleet.settings import FleetRules
from ci_perf.model import codec
from ci_perf.model.fleet import FleetFile, NodeClass
from ci_perf.system import files
from tests.runs import a_measured, a_run
from tests.work_plans import a_unit, a_work_plan

UNIT = Path(__file__).parent / "fakes/fleet_unit.py"
ROOT = Path(__file__).parents[1]
# What one process writes here, others see at once.
QUICK = FleetRules(settle_s=0.5)


def a_task(name, behaviour="measure", seconds=0.0, *, folder, expected_s=1.0, **more):
    """A unit of one workload, and its run, of which a test may say more."""
    run = folder / f"{name}.prepared.json"
    unit = a_unit("matmul", id=name, expected_s=expected_s)
    measured = [a_measured(workload, 1e-3) for workload in more.pop("workloads", ["matmul"])]
    made = a_run(*measured, **{"unit": name, **more})
    if not run.exists():
        files.write(run, made)
    return FleetTask(
        unit=unit,
        plan=a_work_plan(unit),
        machine_class="cpu",
        command=lambda _unit, target: [
            *(sys.executable, str(UNIT), behaviour, str(seconds), str(run), str(target))
        ],
    )


def run_fleet(
    folder, tasks, *, engine="local", fleet=None, nodes=2, rules=QUICK, resume=False, poll_s=0.1
):
    """Run units to their endings; return what came of it and the lines that a person saw."""
    fleet = fleet or FleetFile(classes={"cpu": NodeClass(nodes=nodes)})
    options = FleetOptions(
        folder=folder / "fleet",
        cwd=folder,
        engine=engine,
        classes=fleet.classes,
        environment=fleet.environment,
        rules=rules,
        resume=resume,
    )
    opened = fleet_file.engine(
        engine, fleet, path=Path("fleet.toml"), folder=options.folder, root=folder
    )
    opened.poll_s = poll_s
    lines = []
    result = controller.run(tasks, opened, options, notify=lines.append)
    return result, lines


def kinds(result):
    """How each unit ended."""
    return {ending.unit: ending.kind for ending in result.endings}


def start_controller(
    folder, units, *, engine="local", fleet=None, resume=False, nodes=2, overrun_s=None
):
    """Start a controller in a process of its own; `units` are "NAME=BEHAVIOUR:SECONDS".

    What takes longer than `overrun_s` is taken to hang.
    """
    fleet = fleet or FleetFile(classes={"cpu": NodeClass(nodes=nodes)})
    (folder / "fleet.json").write_text(codec.encode(fleet))
    flags = ["--resume"] if resume else []
    flags += [f"--overrun={overrun_s}"] if overrun_s else []
    return subprocess.Popen(
        [sys.executable, "-m", "tests.fleets", str(folder), engine, *flags, *units],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def attempts(folder):
    """Return the folders of all attempts, by unit."""
    found = {}
    for path in sorted((folder / "fleet/attempts").glob("*/[0-9]-*")):
        found.setdefault(path.parent.name, []).append(path)
    return found


def pids(folder):
    """Return the process of every unit that has ever begun."""
    files_of_pids = (folder / "fleet/attempts").glob("*/*/pids")
    return [int(line) for path in files_of_pids for line in path.read_text().split()]


def main(arguments):
    folder, engine, *units = arguments
    resume = "--resume" in units
    rules = QUICK
    tasks = []
    for unit in units:
        if unit.startswith("--overrun="):
            limit_s = float(unit.partition("=")[2])
            rules = dataclasses.replace(QUICK, overrun_least_s=limit_s, overrun_factor=1.0)
        elif unit != "--resume":
            name, _, what = unit.partition("=")
            behaviour, _, seconds = what.partition(":")
            tasks.append(a_task(name, behaviour, float(seconds), folder=Path(folder)))
    fleet = files.read(Path(folder, "fleet.json"), FleetFile)
    how = {"engine": engine, "fleet": fleet, "resume": resume, "rules": rules}
    result, lines = run_fleet(Path(folder), tasks, **how)
    sys.stdout.write(json.dumps({"endings": kinds(result), "lines": lines}))
    return 130 if result.is_interrupted else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
