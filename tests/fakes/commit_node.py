"""What a node measures of a commit in tests of a fleet: a run that somebody has prepared.

    python commit_node.py FOLDER -P -m ci_perf run --unit UNIT -o TARGET ...

FOLDER/answers.json says by commit what the node does, FOLDER/WORD.json is the run of an answer.
"COMMIT beside BASE" comes before COMMIT. Knows nothing of ci_perf.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

folder = Path(sys.argv[1])
unit = json.loads(Path(sys.argv[sys.argv.index("--unit") + 1]).read_text())
target = Path(sys.argv[sys.argv.index("-o") + 1])
commit, base = unit["source"]["commit"], unit.get("against", "")
with (folder / "launched").open("a") as launched:
    launched.write(f"{commit} {base or None} {os.getpid()} {json.dumps(unit['commit'])}\n")
answers = json.loads((folder / "answers.json").read_text())
word = answers.get(f"{commit} beside {base}", answers.get(commit, answers["others"]))
match word:
    case "broken":
        sys.exit("error: setup of the head: no compiler")
    case "lost" | "hangs":
        # As a node that died: with a checkout that nobody removes.
        reason = f"ci-perf: the base of a comparison, removed at its end: {unit['commit']['label']}"
        where = folder / f"left-{os.getpid()}"
        lock = ["--lock", "--reason", reason]
        add = ["git", "worktree", "add", "--quiet", "--detach", *lock, str(where), commit]
        subprocess.run(add, check=True)
        if word == "lost":
            os.kill(os.getppid(), signal.SIGKILL)
        (folder / "hangs").touch()
        time.sleep(1000)
    case _:
        run = json.loads((folder / f"{word}.json").read_text())
        run |= {"unit": unit["id"], "id": unit["id"]}
        run["source"]["commit"] = commit
        target.write_text(json.dumps(run))
