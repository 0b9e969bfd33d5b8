"""A Ray of two nodes on this machine: real raylets, in a process of their own.

`python -m tests.ray_cluster` starts it, says where it is, and ends it at the end of stdin. A line
"node NAME" there kills a node with all that it runs, "raylet NAME" its raylet alone.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile

from ci_perf.system import linux, processes

NODES = ("n1", "n2")
# Enough for the repositories that tests send.
_STORE_BYTES = 80 * 2**20


class RayCluster:
    """Two nodes; `loses` kills "node n2" or "raylet n2", and not the first, which is the head."""

    def __init__(self, process, address):
        self._process, self.address = process, address

    def loses(self, what):
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == f"{what} is dead\n"


@contextlib.contextmanager
def running(environment):
    """Start a cluster whose nodes have these variables; end it with the block."""
    # Short: the path of a socket ends at 107 bytes.
    folder = tempfile.mkdtemp(prefix="ray-")
    ours = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": folder}
    ours["CI_PERF_LOCK_DIR"] = f"{folder}/locks"  # units have the variables of their node
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.ray_cluster", str(os.getpid())],
        env={**os.environ, **environment, **ours},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        yield RayCluster(process, process.stdout.readline().strip())
    finally:
        try:
            process.communicate(timeout=60)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=60)
        shutil.rmtree(folder, ignore_errors=True)  # a killed node may still end


def main(arguments):
    linux.end_with_parent(int(arguments[0]))
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args=_a_node("n1"))
    nodes = {"n1": cluster.head_node, "n2": cluster.add_node(**_a_node("n2"), wait=True)}
    _say(cluster.address)
    for line in sys.stdin:
        what, name = line.split()
        _kill(nodes[name], is_whole=what == "node")
        _say(f"{what} {name} is dead")
    cluster.shutdown()


def _say(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _a_node(name):
    return {
        "node_name": name,
        "num_cpus": 1,
        "num_gpus": 0,
        "include_dashboard": False,
        "object_store_memory": _STORE_BYTES,
    }


def _kill(node, *, is_whole):
    """Kill the raylet; with all below it, as if the machine had lost its power."""
    raylet = node.all_processes["raylet"][0].process.pid
    below = [process.pid for process in processes.below(raylet)] if is_whole else []
    for pid in [raylet, *below]:
        processes.kill(pid)


if __name__ == "__main__":
    main(sys.argv[1:])
