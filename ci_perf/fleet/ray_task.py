"""What runs in a worker process of Ray: it starts our agent, and ends it when it is cancelled.

Sent to the nodes as it is, so that their Ray need not have ci_perf: standard library only.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence


def attempt(
    command: Sequence[str], said: bytes, repository: bytes, tidy_up_s: float, most: int
) -> Iterator[bytes]:
    """Run an agent, which is told on stdin what has been `said`, and the repository.

    Yields the id of the node, what the agent has written (`most` bytes and one, if it is more), and
    its exit code with its last words. Cancelled, it gives the agent `tidy_up_s` seconds to end.
    """
    import ray

    yield ray.get_runtime_context().get_node_id().encode()
    file = tempfile.TemporaryFile
    with file() as given, file() as written, file() as errors:
        given.write(said + repository)
        given.seek(0)
        command = [*command, str(os.getpid())]
        agent = subprocess.Popen(command, stdin=given, stdout=written, stderr=errors)
        try:
            while agent.poll() is None:  # Ray cancels a task by an exception, which ends no wait()
                time.sleep(0.1)
        finally:
            agent.terminate()
            try:
                agent.wait(tidy_up_s)
            finally:
                agent.kill()
        written.seek(0)
        yield written.read(most + 1)
        errors.seek(max(0, errors.seek(0, os.SEEK_END) - 2000))
        yield f"{agent.returncode} {errors.read().decode(errors='replace')}".encode()
