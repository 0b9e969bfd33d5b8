"""A Slurm of two nodes on this machine: real daemons on loopback, and GPUs that are none."""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time

from ci_perf.system import processes

# Debian's packages of what is needed; `.ci/packages` installs them.
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo")
NODES = ("n1", "n2")
# Where Debian has daemons; not everybody's PATH says so.
_PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
# Ends a daemon with these tests, also where they are killed.
_WITH_US = ("setpriv", "--pdeathsig", "KILL")
_START_S = 60.0

# One host plays all nodes: each has its own name and port. A dead one is noticed within seconds.
# No cgroups, which a container may not have. Any device is a GPU to Slurm.
_CONF = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,batch_sched_delay=0,sched_min_interval=0
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
ReturnToService=2
SlurmdTimeout=5
KillWait=10
GresTypes=gpu
{nodes}
PartitionName=gpu Nodes=ALL Default=YES MaxTime=60
"""
_NODE = (
    "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 RealMemory=1000 "
    "Gres=gpu:1"
)


class NoSlurmError(Exception):
    """This machine has no Slurm, or may not run it."""


class SlurmCluster:
    """Two nodes; `loses` kills one of them with all that it runs."""

    def __init__(self, folder):
        self.folder = folder
        self._daemons = {}

    @property
    def environment(self):
        """What tells a client of Slurm which cluster is meant."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def ask(self, *command):
        done = subprocess.run(
            command,
            env={**os.environ, "PATH": _PATH, **self.environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.stdout.split() if done.returncode == 0 else []

    def queue(self):
        """Return the jobs that wait or run."""
        return self.ask("squeue", "--noheader", "--states=PD,R,CG", "--format=%i")

    def idle(self):
        return self.ask("sinfo", "--noheader", "--Node", "--states=idle", "--format=%N")

    def loses(self, node):
        """Kill a node: its daemon, what watches its jobs, and the jobs."""
        daemon = self._daemons.pop(node)
        daemon.kill()
        daemon.wait()
        jobs = processes.find_carrying("SLURMD_NODENAME", node)
        watchers = {process.parent for process in processes.below(1) if process.pid in jobs} - {
            *jobs,
            1,
            os.getpid(),
        }
        for pid in [*watchers, *jobs]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def start(self, name, *command):
        log = (self.folder / f"{name}.log").open("wb")
        self._daemons[name] = subprocess.Popen(
            [*_WITH_US, *command],
            env={**os.environ, "PATH": _PATH, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        log.close()

    def start_node(self, node):
        self.start(node, "slurmd", "-D", "-N", node)

    def wait_until_idle(self):
        """Wait until every node may be given work. Raises NoSlurmError."""
        deadline = time.monotonic() + _START_S
        while sorted(self.idle()) != sorted(NODES):
            if time.monotonic() > deadline:
                logs = (path.read_text()[-500:] for path in self.folder.glob("*.log"))
                raise NoSlurmError("Slurm does not start: " + " | ".join(logs))
            time.sleep(0.1)

    def end(self):
        self.ask("scancel", *self.queue())
        deadline = time.monotonic() + 20
        while self.queue() and time.monotonic() < deadline:
            time.sleep(0.1)
        for daemon in reversed(self._daemons.values()):
            daemon.terminate()
        for daemon in self._daemons.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon.wait(timeout=10)
            daemon.kill()
            daemon.wait()


@contextlib.contextmanager
def running(folder):
    """Give a cluster in a new folder. Raises NoSlurmError."""
    for program in (*PROGRAMS, _WITH_US[0]):
        if not shutil.which(program, path=_PATH):
            raise NoSlurmError(f"{program}: not there (`.ci/packages` installs it)")
    cluster = SlurmCluster(folder)
    try:
        _configure(folder)
        munge = folder / "munge"
        files = ("key", "socket", "pid", "log", "seed")
        names = [f"--{name}-file={munge}/{name}" for name in files if name != "socket"]
        cluster.start("munged", "munged", "--foreground", "--force", *names, f"-S{munge}/socket")
        cluster.start("slurmctld", "slurmctld", "-D", "-c")
        for node in NODES:
            cluster.start_node(node)
        cluster.wait_until_idle()
        yield cluster
    finally:
        cluster.end()


def _configure(folder):
    folder.chmod(0o755)
    for name in ("state", "munge", *(f"spool.{node}" for node in NODES)):
        (folder / name).mkdir(mode=0o755)
    key = folder / "munge/key"
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o400)
    gpus = []
    for number, node in enumerate(NODES):
        device = folder / f"gpu{number}"
        os.mknod(device, 0o666 | 0o020000, os.makedev(1, 3))  # as /dev/null
        gpus.append(f"NodeName={node} Name=gpu File={device}")
    (folder / "gres.conf").write_text("\n".join(gpus) + "\n")
    (folder / "cgroup.conf").write_text(f"CgroupPlugin={_cgroups()}\n")
    host = socket.gethostname().partition(".")[0]
    first, *ports = _free_ports(1 + len(NODES))
    nodes = "\n".join(
        _NODE.format(name=node, host=host, port=port)
        for node, port in zip(NODES, ports, strict=True)
    )
    conf = _CONF.format(host=host, port=first, folder=folder, nodes=nodes)
    (folder / "slurm.conf").write_text(conf)


def _cgroups():
    """Say how this version is told to leave cgroups alone: 23.02 and newer have a word for it."""
    said = subprocess.run(
        ["slurmd", "-V"], env={"PATH": _PATH}, capture_output=True, text=True, check=True
    ).stdout
    return "disabled" if int(said.split()[1].split(".")[0]) >= 23 else "cgroup/v1"


def _free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one_socket in sockets:
            one_socket.bind(("127.0.0.1", 0))
        return [one_socket.getsockname()[1] for one_socket in sockets]
