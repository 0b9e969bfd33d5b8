"""Kubernetes by `kubectl`: an Indexed Job per submission, whose pods write into a shared volume."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ci_perf.errors import EngineError, UsageError
from ci_perf.fleet import client, node
from ci_perf.fleet.engine import EngineJob, JobState, Observation, Placed
from ci_perf.model.fleet import KubernetesTable, NodeClass
from ci_perf.system import files

_POLL_S = 4.0
_OURS = {"app.kubernetes.io/managed-by": "ci-perf"}
_JOB = "batch.kubernetes.io/job-name"
_INDEX = "batch.kubernetes.io/job-completion-index"
_HOST = "kubernetes.io/hostname"
_NODE_NAME = "spec.nodeName"
# Kueue (https://kueue.sigs.k8s.io) takes a Job with this label into its queue, and starts it.
_QUEUE = "kueue.x-k8s.io/queue-name"
# A day to look at what is over; results are in the shared folder.
_KEPT_S = 86_400
# The agent gives its command 5 s to tidy up.
_GRACE_S = 8
_PHASES: dict[str, JobState] = {
    "Pending": "queued",
    "Running": "running",
    "Succeeded": "ended",
    "Failed": "ended",
}
# Before 1.34 the API does not take "True" for granted.
_DISRUPTED = {"type": "DisruptionTarget", "status": "True"}
_Manifest = dict[str, Any]


class KubernetesEngine:
    """Retries are off in every place where Kubernetes has some: a retry is another measurement."""

    poll_s = _POLL_S

    def __init__(self, table: KubernetesTable, environment: Mapping[str, str]) -> None:
        self._table, self._environment = table, environment
        context = [f"--context={table.context}"] if table.context else []
        self._kubectl = ["kubectl", *context, f"--namespace={table.namespace}"]
        # Of each job, the indices that somebody still waits for.
        self._live: dict[str, set[int]] = {}

    def submit(self, job: EngineJob) -> Mapping[str, str]:
        """See FleetEngine. Raises EngineError with kubectl's words."""
        path = Path(job.file).with_suffix(".manifest.json")
        text = json.dumps(manifest(job, self._table, self._environment), indent=1, sort_keys=True)
        files.write_text(path, text + "\n")
        client.ask([*self._kubectl, "create", f"--filename={path}"])
        self._live[job.name] = {attempt.index for attempt in job.attempts}
        return {attempt.nonce: f"{job.name}/{attempt.index}" for attempt in job.attempts}

    def poll(self, placed: Sequence[Placed]) -> Mapping[str, Observation]:
        """See FleetEngine: one `kubectl get`, however many jobs there are."""
        selector = ",".join(f"{name}={value}" for name, value in _OURS.items())
        asked = [*self._kubectl, "get", "jobs,pods", f"--selector={selector}", "--output=json"]
        jobs, pods = _parsed(client.ask(asked))
        self._live = _indices(placed)
        seen = {}
        for p in placed:
            name, index = p.attempt.job, p.attempt.index
            if p.handle and name in jobs:
                seen[p.attempt.nonce] = _observation(jobs[name], pods[name, index], index)
        return seen

    def cancel(self, placed: Sequence[Placed]) -> None:
        """See FleetEngine: a job that nobody waits for is deleted, of others the pods."""
        for name, indices in _indices(placed).items():
            live = self._live.get(name, set())
            live -= indices
            if live:
                chosen = ",".join(map(str, sorted(indices)))
                which = ["pods", f"--selector={_JOB}={name},{_INDEX} in ({chosen})"]
            else:
                which = ["job", name, "--cascade=background"]
            client.ask([*self._kubectl, "delete", *which, "--ignore-not-found", "--wait=false"])

    def close(self) -> None:
        """See FleetEngine: Kubernetes removes what has ended after a day."""


def check(folder: Path, root: Path, table: KubernetesTable) -> None:
    """Refuse what no pod would find in the shared volume. Raises UsageError."""
    for what, path in {"--output": folder, "the checkout": root}.items():
        if not path.is_relative_to(table.mount):
            raise UsageError(
                f"{what}: expected a folder below {table.mount}, where [engine.kubernetes] mounts "
                f"the claim {table.claim!r}, found {path}"
            )


def manifest(job: EngineJob, table: KubernetesTable, environment: Mapping[str, str]) -> _Manifest:
    """Return the Job of Kubernetes for some attempts."""
    labels = {**_OURS, "ci-perf/class": job.class_name[:63].strip("-_.+=")}
    queue = {_QUEUE: table.queue} if table.queue else {}
    count = len(job.attempts)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": job.name, "labels": {**labels, **queue}},
        "spec": {
            "completionMode": "Indexed",
            "completions": count,
            "parallelism": count,
            "backoffLimitPerIndex": 0,
            # One node that is drained must not end the units of others, so an index fails alone.
            "maxFailedIndexes": count,
            "podFailurePolicy": {
                "rules": [
                    {"action": "FailIndex", "onPodConditions": [_DISRUPTED]},
                    {"action": "FailIndex", "onExitCodes": {"operator": "NotIn", "values": [0]}},
                ]
            },
            # Else two pods of one index could run (kubernetes/kubernetes#115844).
            "podReplacementPolicy": "Failed",
            "ttlSecondsAfterFinished": _KEPT_S,
            "template": {"metadata": {"labels": labels}, "spec": _pod(job, table, environment)},
        },
    }


def _pod(job: EngineJob, table: KubernetesTable, environment: Mapping[str, str]) -> _Manifest:
    """Return the pod, which has its node to itself among ours, and no credential of the cluster."""
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        # Else every service of the namespace becomes variables of the measured processes.
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": _GRACE_S,
        "affinity": _affinity(job.avoid),
        **_selector(job.class_name, job.node_class),
        **({"tolerations": list(table.tolerations)} if table.tolerations else {}),
        "volumes": [
            {"name": "shared", "persistentVolumeClaim": {"claimName": table.claim}},
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": table.shm}},
        ],
        "containers": [
            {
                "name": "unit",
                "image": table.image,
                "command": [table.python, "-P", "-m", node.MODULE, job.file],
                "env": [
                    # The host name of a pod is its own: it says nothing of the node.
                    {"name": "CI_PERF_NODE", "valueFrom": {"fieldRef": {"fieldPath": _NODE_NAME}}},
                    *({"name": n, "value": v} for n, v in sorted(environment.items())),
                ],
                "resources": {"requests": table.resources, "limits": table.resources},
                "volumeMounts": [
                    {"name": "shared", "mountPath": table.mount},
                    {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108  torch's own place
                ],
            }
        ],
    }


def _affinity(avoid: Sequence[str]) -> _Manifest:
    """Keep units apart from each other, and from nodes on which they failed."""
    apart = {"labelSelector": {"matchLabels": _OURS}, "topologyKey": _HOST}
    affinity: _Manifest = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
    }
    if avoid:
        # One name each: the API takes no more in a field selector.
        fields = [{"key": "metadata.name", "operator": "NotIn", "values": [n]} for n in avoid]
        terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
        affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return affinity


def _selector(name: str, node_class: NodeClass) -> _Manifest:
    """Return the label of the nodes of a class. Raises UsageError."""
    if not node_class.select:
        return {}
    key, sign, value = node_class.select.partition("=")
    if not (key and sign):
        raise UsageError(
            f"[class.{name}]: select: expected a label of nodes, KEY=VALUE, "
            f"found {node_class.select!r}"
        )
    return {"nodeSelector": {key: value}}


def _parsed(text: str) -> tuple[dict[str, _Manifest], dict[tuple[str, int], list[_Manifest]]]:
    """Return the jobs by name, and the pods by job and index. Raises EngineError."""
    jobs: dict[str, _Manifest] = {}
    pods: dict[tuple[str, int], list[_Manifest]] = defaultdict(list)
    try:
        for item in json.loads(text)["items"]:
            metadata = item["metadata"]
            if item["kind"] == "Job":
                jobs[metadata["name"]] = item
                continue
            name = metadata["labels"].get(_JOB)
            index = {**metadata["labels"], **metadata.get("annotations", {})}.get(_INDEX)
            if name and index:
                pods[name, int(index)].append(item)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise EngineError(f"kubectl: expected jobs and pods as JSON, found: {error!r}") from None
    return jobs, pods


def _observation(job: _Manifest, pods: Sequence[_Manifest], index: int) -> Observation:
    """Say what has become of an index; of two pods the one that still runs speaks for it."""
    seen = [_of_pod(pod) for pod in pods]
    for state in ("running", "ended", "lost", "queued"):
        for observation in seen:
            if observation.state == state:
                return observation
    status = job.get("status", {})
    if _has(status.get("completedIndexes", ""), index):
        return Observation(state="ended", detail="completed")
    if _has(status.get("failedIndexes", ""), index) or _is_over(status):
        return Observation(state="lost", detail="its pod is gone")
    return Observation(state="queued")


def _of_pod(pod: _Manifest) -> Observation:
    status = pod.get("status", {})
    phase = status.get("phase", "Pending")
    disrupted = [
        condition.get("reason", "")
        for condition in status.get("conditions", [])
        if _DISRUPTED.items() <= condition.items()
    ]
    state = _PHASES.get(phase, "lost")  # "Unknown": the node does not answer
    if disrupted and phase == "Failed":
        state = "lost"
    why = "; ".join(filter(None, [*disrupted, status.get("reason", ""), _waiting(status)]))
    return Observation(
        state=state,
        node=pod.get("spec", {}).get("nodeName", ""),
        detail=f"{phase}, {why}" if why else phase,
    )


def _waiting(status: _Manifest) -> str:
    """Say why a container does not start, or how it ended."""
    for container in status.get("containerStatuses", []):
        for state in container.get("state", {}).values():
            if state.get("reason"):
                return str(state["reason"])
    return ""


def _is_over(status: _Manifest) -> bool:
    return any(
        condition.get("type") in {"Complete", "Failed"} and condition.get("status") == "True"
        for condition in status.get("conditions", [])
    )


def _has(ranges: str, index: int) -> bool:
    """Whether an index is among "1,3-5"."""
    for part in filter(None, ranges.split(",")):
        first, _, last = part.partition("-")
        if int(first) <= index <= int(last or first):
            return True
    return False


def _indices(placed: Iterable[Placed]) -> dict[str, set[int]]:
    indices: dict[str, set[int]] = defaultdict(set)
    for p in placed:
        indices[p.attempt.job].add(p.attempt.index)
    return dict(indices)
