"""A `kubectl` with a cluster of two nodes in a folder: pods are real processes, states are files.

Speaks the part of the command line that ci_perf uses: create, get and delete of jobs and pods. Runs
the command of a pod on this machine, one pod per node. KUBECTL_CLUSTER names the folder.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(os.environ["KUBECTL_CLUSTER"])
NODES = ("k1", "k2")
JOB = "batch.kubernetes.io/job-name"
INDEX = "batch.kubernetes.io/job-completion-index"
# A container's process is asked to end, then killed.
GRACE_S = 8


def main(arguments):
    options = dict(a.removeprefix("--").split("=", 1) for a in arguments if "=" in a[2:])
    words = [a for a in arguments if not a.startswith("--")]
    with (FOLDER / "asked").open("a") as asked:
        asked.write(" ".join(arguments) + "\n")
    if (FOLDER / "silent").exists():
        sys.exit("Unable to connect to the server: dial tcp 10.0.0.1:6443: i/o timeout")
    match words:
        case ["create"]:
            create(json.loads(Path(options["filename"]).read_text()))
        case ["get", "jobs,pods"]:
            schedule()
            sys.stdout.write(json.dumps({"kind": "List", "items": [*jobs(), *map(shown, pods())]}))
        case ["delete", "job", name]:
            (FOLDER / f"{name}.job").unlink(missing_ok=True)
            delete([pod for pod in pods() if pod["labels"][JOB] == name])
        case ["delete", "pods"]:
            (name,) = re.findall(rf"{JOB}=([^,]+)", options["selector"])
            indices = re.findall(r"[(,]([0-9]+)", options["selector"])
            labels = [{**p["labels"], "pod": p} for p in pods()]
            delete([one["pod"] for one in labels if one[JOB] == name and one[INDEX] in indices])
        case _:
            sys.exit(f"error: unknown command {words}")


def create(manifest):
    name = manifest["metadata"]["name"]
    path = FOLDER / f"{name}.job"
    if path.exists():
        sys.exit(f'Error from server (AlreadyExists): jobs.batch "{name}" already exists')
    if (FOLDER / "quota").exists():
        sys.exit('Error from server (Forbidden): jobs.batch "x" is forbidden: exceeded quota: pods')
    path.write_text(json.dumps(manifest))
    for index in range(manifest["spec"]["completions"]):
        labels = {**manifest["spec"]["template"]["metadata"]["labels"], JOB: name}
        keep({"name": f"{name}-{index}", "labels": {**labels, INDEX: str(index)}, "node": ""})
    schedule()


def schedule():
    """Start what waits on nodes that are free, as affinity allows."""
    taken = {pod["node"] for pod in pods() if phase(pod) == "Running"}
    for pod in pods():
        if pod["node"]:
            continue
        path = FOLDER / f"{pod['labels'][JOB]}.job"
        template = json.loads(path.read_text())["spec"]["template"]["spec"]
        for node in NODES:
            if node not in taken and node not in refused(template):
                taken.add(node)
                start(pod, node, template["containers"][0])
                break


def refused(template):
    affinity = template["affinity"].get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    for term in required.get("nodeSelectorTerms", []):
        for field in term["matchFields"]:
            assert (field["key"], field["operator"], len(field["values"])) == (
                "metadata.name",
                "NotIn",
                1,
            )
            yield from field["values"]


def start(pod, node, container):
    given = {e["name"]: e.get("value", node) for e in container["env"]}
    given["JOB_COMPLETION_INDEX"] = pod["labels"][INDEX]
    ended = FOLDER / f"{pod['name']}.code"
    process = subprocess.Popen(
        ["sh", "-c", '"$@"; echo $? > "$0"', ended, *container["command"]],
        env={"PATH": os.environ["PATH"], "HOME": "/root", **given},
        stdin=subprocess.DEVNULL,
        stdout=(FOLDER / f"{pod['name']}.log").open("wb"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    keep({**pod, "node": node, "pid": process.pid})


def delete(gone):
    for pod in gone:
        (FOLDER / f"{pod['name']}.pod").unlink(missing_ok=True)
        if phase(pod) != "Running":
            continue
        # The shell is no part of a container: the agent below it is asked to end.
        children = Path(f"/proc/{pod['pid']}/task/{pod['pid']}/children").read_text().split()
        for child in children:
            os.kill(int(child), signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        while phase(pod) == "Running" and time.monotonic() < deadline:
            time.sleep(0.05)
        if phase(pod) == "Running":
            os.killpg(pod["pid"], signal.SIGKILL)


def keep(pod):
    (FOLDER / f"{pod['name']}.pod").write_text(json.dumps(pod))


def pods():
    return [json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.pod"))]


def jobs():
    for path in sorted(FOLDER.glob("*.job")):
        yield {**json.loads(path.read_text()), "status": {}}


def phase(pod):
    if not pod["node"]:
        return "Pending"
    path = FOLDER / f"{pod['name']}.code"
    if not path.exists() or not path.read_text():
        return "Running"
    return "Succeeded" if int(path.read_text()) == 0 else "Failed"


def shown(pod):
    spec = {"nodeName": pod["node"]} if pod["node"] else {}
    metadata = {"name": pod["name"], "labels": pod["labels"], "annotations": {}}
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase(pod)}}


main(sys.argv[1:])
