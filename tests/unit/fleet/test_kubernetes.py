"""Kubernetes: the manifest against the published schemas, and what its states mean."""

import json

import kubernetes_validate
import pytest

from ci_perf.errors import EngineError, UsageError
from ci_perf.fleet import kubernetes
from ci_perf.fleet.engine import EngineJob
from ci_perf.model.fleet import Attempt, KubernetesTable, NodeClass

TABLE = KubernetesTable(
    image="ghcr.io/us/perf@sha256:0123",
    claim="perf",
    mount="/perf",
    queue="gpus",
    resources={"nvidia.com/gpu": "8", "memory": "900Gi"},
    tolerations=({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},),
)
NAME = "ci-perf-0123456789abcdef"


def a_job(count=3, *, avoid=(), select="pool=h100"):
    attempts = tuple(
        Attempt(unit=f"u{i}", number=1, nonce=f"n{i}", job=NAME, index=i, avoid=avoid)
        for i in range(count)
    )
    return EngineJob(
        name=NAME,
        file=f"/perf/run/jobs/{NAME}.json",
        class_name="h100",
        node_class=NodeClass(select=select, nodes=4),
        avoid=avoid,
        attempts=attempts,
    )


def a_manifest(**more):
    return kubernetes.manifest(a_job(**more), TABLE, {"OMP_PLACES": "cores"})


# Per-index limits are stable since 1.33; before, they were behind a gate.
@pytest.mark.parametrize("version", ["1.29", "1.33", kubernetes_validate.latest_version()])
@pytest.mark.parametrize("avoid", [(), ("node-1", "node-2")])
def test_a_manifest_fits_the_published_schema(version, avoid):
    kubernetes_validate.validate(a_manifest(avoid=avoid), version, strict=True)


def test_a_manifest_that_does_not_fit_is_noticed():
    manifest = a_manifest()
    manifest["spec"]["backoffLimitPerIndx"] = 0

    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(manifest, "1.33", strict=True)


def test_nothing_is_tried_twice_by_kubernetes_itself():
    spec = a_manifest()["spec"]

    assert spec["completionMode"] == "Indexed"
    assert (spec["completions"], spec["parallelism"], spec["backoffLimitPerIndex"]) == (3, 3, 0)
    assert spec["podReplacementPolicy"] == "Failed"
    assert {rule["action"] for rule in spec["podFailurePolicy"]["rules"]} == {"FailIndex"}
    assert spec["template"]["spec"]["restartPolicy"] == "Never"


def test_a_pod_has_no_credential_and_its_node_to_itself():
    manifest = a_manifest(avoid=("node-1",))
    pod = manifest["spec"]["template"]["spec"]

    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert pod["nodeSelector"] == {"pool": "h100"}
    assert "podAntiAffinity" in pod["affinity"]
    assert "node-1" in json.dumps(pod["affinity"]["nodeAffinity"])
    assert manifest["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "gpus"


def test_a_label_that_is_none_is_refused():
    with pytest.raises(UsageError, match=r"\[class.h100\]: select: .*KEY=VALUE, found 'h100'"):
        a_manifest(select="h100")


def a_pod(phase, *, node="node-1", disrupted=False, reason=""):
    conditions = [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]
    waiting = {"state": {"waiting": {"reason": reason}}}
    status = {
        "phase": phase,
        "conditions": conditions if disrupted else [],
        "containerStatuses": [waiting] if reason else [],
    }
    return {"spec": {"nodeName": node}, "status": status}


@pytest.mark.parametrize(
    ("pods", "status", "state"),
    [
        ([a_pod("Pending", node="")], {}, "queued"),
        ([a_pod("Running")], {}, "running"),
        ([a_pod("Running", disrupted=True)], {}, "running"),
        ([a_pod("Succeeded")], {}, "ended"),
        ([a_pod("Failed")], {}, "ended"),
        ([a_pod("Failed", disrupted=True)], {}, "lost"),
        ([a_pod("Unknown")], {}, "lost"),
        ([a_pod("Failed"), a_pod("Running")], {}, "running"),
        ([], {}, "queued"),
        ([], {"completedIndexes": "0,2-4"}, "ended"),
        ([], {"failedIndexes": "3"}, "lost"),
        ([], {"failedIndexes": "0-2"}, "queued"),
        ([], {"conditions": [{"type": "Failed", "status": "True"}]}, "lost"),
    ],
)
def test_a_state_of_kubernetes_is_one_of_ours(pods, status, state):
    assert kubernetes._observation({"status": status}, pods, 3).state == state


def test_why_a_pod_waits_is_said():
    observation = kubernetes._observation({}, [a_pod("Pending", reason="ImagePullBackOff")], 0)

    assert observation.detail == "Pending, ImagePullBackOff"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"items": [{}]}', '{"items": 1}'])
def test_an_answer_that_is_none_is_an_error_of_the_engine(text):
    with pytest.raises(EngineError, match="kubectl: expected jobs and pods as JSON"):
        kubernetes._parsed(text)
