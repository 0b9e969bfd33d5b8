"""A worker in one screen: builds workloads, takes a few steps, tells what it saw. No network.

Reads a JSON list of [id, file, parameters, seed] on stdin; DATA_DIR is the only argument. Writes
one JSON object per line to stdout.
"""

import contextlib
import importlib
import json
import multiprocessing
import socket
import sys
from pathlib import Path

STEPS = 3


def refuse_network(event, arguments):
    """An audit hook; loader workers talk over local sockets, which are no network."""
    if event == "socket.getaddrinfo" or (
        event == "socket.connect" and arguments[0].family != socket.AF_UNIX
    ):
        raise RuntimeError(f"the workload used the network: {event} {arguments}")


def load(file):
    path = Path(file)
    sys.path.insert(0, str(path.parent))
    return importlib.import_module(path.stem)


def step(identity, file, parameters, seed, *, data_dir):
    import torch
    from torch._dynamo.utils import counters

    from ci_perf.workload import Context

    torch._dynamo.reset()
    counters.clear()
    torch.manual_seed(seed)
    entered = []

    def noting(name):
        entered.append(name)
        return contextlib.nullcontext()

    context = Context(
        device="cpu",
        parameters=parameters,
        seed=seed,
        data_dir=data_dir,
        phase=noting,
    )
    workload = load(file).build(context)
    numbers = [numbers_after_step(workload) for _ in range(STEPS)]
    children = len(multiprocessing.active_children())
    if workload.teardown is not None:
        workload.teardown()
    return {
        "id": identity,
        "seed": seed,
        "numbers": numbers,
        "phases": entered,
        "precision": workload.precision,
        "parameters": workload.parameter_count,
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "varies": workload.varies,
        "items": workload.items_per_step,
        "unit": workload.item_unit,
        "epoch": workload.items_per_epoch,
        "graphs": counters["stats"]["unique_graphs"],
        "graph_breaks": sum(counters["graph_break"].values()),
        "children": children,
        "children_after": len(multiprocessing.active_children()),
    }


def numbers_after_step(workload):
    """The loss, where there is one, and the size of each tensor of the result."""
    workload.step()
    losses = [] if workload.loss is None else [workload.loss()]
    result = [] if workload.output is None else workload.output()
    tensors = result if isinstance(result, list) else [result]
    return [*losses, *(float(tensor.detach().double().abs().mean()) for tensor in tensors)]


if __name__ == "__main__":
    sys.addaudithook(refuse_network)
    for job in json.load(sys.stdin):
        sys.stdout.write(json.dumps(step(*job, data_dir=sys.argv[1])) + "\n")
