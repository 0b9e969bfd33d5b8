"""A slower step of nanoGPT's train.py, found by a check of the command as a user types it.

    python -m benchmarks.nanogpt /path/of/a/clone/of/nanoGPT

Copies train.py, model.py and configurator.py of the clone's HEAD into a temporary repository, with
65 tokens as data. A branch makes each of its 20 iterations longer by 10 %: it waits, busy, for
a tenth of the time that the iteration took. Prints, of three checks on a CPU, minutes, exit code
and the row of the step: of a branch without a change and of the slower one by the times that
train.py prints, and of the slower one by the time of the whole command.
"""

import argparse
import array
import json
import pickle
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.repositories import Repository
from ci_perf.model.comparison import Change, Comparison
from ci_perf.system import files

FILES = ("train.py", "model.py", "configurator.py")
# The end of an iteration, and the same one 10 % later.
STEP_ENDS = "    t1 = time.time()\n"
SLOWER = f"{STEP_ENDS}    while time.time() < t1 + 0.1 * (t1 - t0): pass\n{STEP_ENDS}"
VOCABULARY = 65
COMMAND = shlex.split(
    "train.py --dataset=tiny --device=cpu --dtype=float32 --compile=False --eval_iters=1"
    " --gradient_accumulation_steps=1 --batch_size=8 --block_size=64 --n_layer=4 --n_head=4"
    " --n_embd=128 --always_save_checkpoint=False --max_iters=20"
)
METRIC = ("--metric", "step_ms=iter .*time ([0-9.]+)ms", "--skip", "4")
BUDGET = "5m"


def make_repository(root: Path, clone: Path) -> Repository:
    """Return a repository with the branches `same` and `slower`."""
    repository = Repository(root)
    texts = {
        name: subprocess.run(
            ["git", "-C", clone, "show", f"HEAD:{name}"], check=True, capture_output=True, text=True
        ).stdout
        for name in FILES
    }
    repository.write(texts)
    data = repository.root / "data/tiny"
    data.mkdir(parents=True)
    for name in ("train.bin", "val.bin"):
        (data / name).write_bytes(array.array("H", range(VOCABULARY)).tobytes() * 300)
    (data / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": VOCABULARY}))
    repository.commit()
    for name, text in {
        "same": texts["train.py"] + "# Another comment.\n",
        "slower": texts["train.py"].replace(STEP_ENDS, SLOWER),
    }.items():
        repository.git("switch", "--quiet", "--create", name, "main")
        repository.write({"train.py": text})
        repository.commit()
    return repository


def check(repository: Repository, branch: str, *options: str) -> dict[str, object]:
    """Check a branch; return minutes, verdict and the row of the step."""
    repository.git("switch", "--quiet", branch)
    output = repository.root.parent / "comparison.json"
    report = repository.root.parent / "report.md"
    for file in (output, report):
        file.unlink(missing_ok=True)
    start = time.monotonic()
    repository.ci_perf(
        *("check", "--against", "main", "--comparison", str(output), "--report", str(report)),
        *("--output", str(output.with_name("run.json")), "--budget", BUDGET, *options),
        *("--", sys.executable, *COMMAND),
    )
    minutes = (time.monotonic() - start) / 60
    comparison = files.read(output, Comparison)
    (step,) = (
        row for row in comparison.rows if isinstance(row, Change) and row.metric == "step_time_s"
    )
    lines = report.read_text("utf-8").splitlines()
    return {
        "branch": branch,
        "read": "the printed times" if options else "the whole command",
        "minutes": round(minutes, 1),
        "exit code": comparison.exit_code,
        "verdict": step.verdict.value,
        "row": next(line for line in lines if "step time" in line and line.startswith("|")),
    }


def main(clone: Path) -> None:
    """Print the three checks."""
    with tempfile.TemporaryDirectory() as name:
        repository = make_repository(Path(name), clone)
        for branch, options in (("same", METRIC), ("slower", METRIC), ("slower", ())):
            print(json.dumps(check(repository, branch, *options), ensure_ascii=False), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("clone", type=Path)
    main(parser.parse_args().clone)
