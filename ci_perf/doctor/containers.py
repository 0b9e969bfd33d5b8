"""How each kind of container is given its GPUs. Pure."""

from ci_perf.model.facts import Host

_DOCKER = (
    "start it with `docker run --gpus all ...` (in a workflow: `container: {options: --gpus all}`)"
)
_OTHERS = {
    "podman": "start it with `podman run --device nvidia.com/gpu=all ...`",
    "kubernetes": "ask for one in the pod: `resources: {limits: {nvidia.com/gpu: 1}}`",
    "apptainer": "start it with `apptainer run --nv ...`",
    "lxc": "pass the devices through: `lxc config device add NAME gpu gpu`",
}


def give_gpus(host: Host) -> str:
    """Say how this container gets a GPU, as the middle of a sentence."""
    return _OTHERS.get(host.container or "", _DOCKER)
