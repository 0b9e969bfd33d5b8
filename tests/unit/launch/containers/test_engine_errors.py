"""Each refusal of an engine is named with its next step; the words in `recorded/` are real."""

import re
from pathlib import Path

import pytest

from ci_perf.launch.containers import engine_errors

RECORDED = Path(__file__).parent / "recorded"
DOCKERS = ("docker-20.10", "docker-28.2")
PODMAN = "podman-4.3"
ENGINES = (*DOCKERS, PODMAN)

# What was met: a part of what it means, and of the next step.
MEANINGS = {
    "perm": ("expected to be let in at unix:///var/run/docker.sock", "usermod -aG docker"),
    "sock_missing": ("a running daemon at unix:///var/run/docker.sock", "systemctl start docker"),
    "badhost": ("DOCKER_HOST or the docker context", "unset DOCKER_HOST"),
    "badctx": ('context "nosuch"', "docker context ls"),
    "oldapi": ("API 9.99 is too new", "versions that go together"),
    "missing_local": ("expected the image nosuch:1 on this host", "pull nosuch:1`"),
    "missing_config": ("expected the image sha256:1111", "pull it first"),
    "bad_reference": ("the image's name is none", "NAME@sha256:DIGEST"),
    "pull_notag": ("the registry has no such image", "compare tag and digest"),
    "pull_digest": ("has no such image", "compare tag and digest"),
    "pull_auth": ("does not let us in", "login REGISTRY"),
    "pull_https": ("speaks no HTTPS", "insecure registry"),
    "pull_unreach": ("could not be reached: 127.0.0.1:5999", "look at network"),
    "pull_dns": ("registry.invalid", "look at network"),
    "pull_corrupt": ("HTTP status: 500", "look at network"),
    "platform": ("linux/amd64", "architecture of this host"),
    "execformat": ("another architecture", "architecture of this host"),
    "full_pull": ("disk of the engine is full", "system prune"),
    "full_create": ("disk of the engine is full", "system prune"),
    "full_start": ("disk of the engine is full", "system prune"),
    "gpus": ("was not given the NVIDIA toolkit", "nvidia-ctk runtime configure"),
    "runtime": ("NVIDIA", "nvidia-ctk"),
    "cdi": ("CDI", ""),
    "hook_device": ("no GPU GPU-9", "nvidia-smi -L"),
    "hook_requirement": ("newer NVIDIA driver than this host has: cuda>=12.6", "update the driver"),
    "hook_mismatch": ("updated while it ran", "reboot"),
    "hook_no_driver": ("found no working driver", "nvidia-smi"),
    "hook_library": ("found no working driver", "nvidia-smi"),
    "name_conflict": ("a container dup is there already", "rm -f dup"),
    "nouser": ("knows no user nosuch", "as numbers"),
    "rlimit": ("may not raise a limit of processes", "CAP_SYS_RESOURCE"),
    "rlimit_default": ("may not raise a limit of processes", "default_ulimits"),
    "cgroups": ("control groups", 'runtime = "runc"'),
    "cgroups_systemd": ("control groups", "cgroup_manager"),
    "noinit": ("no init", "catatonit"),
    "mem_low": ("smaller than a container needs: 6MB", "or --memory"),
    "cpus": ("the cores 0-99, found only 0-1", "or --cpus"),
    "tmpfs_bad": ("memory file system with size=abc", "--tmp-size and --shm-size"),
    "pids": ("no more processes", "or --pids; or `--ulimit nproc"),
    "mount_missing": ("expected the folder /nonexistent/x", "see the same files"),
    "mount_bad": ("", "see the same files"),
    "notfound": ("has no program python9", "Python 3.11"),
    "notfound_init": ("has no program", "Python 3.11"),
    "notexec": ("/etc/passwd may not be executed", "executable for everybody"),
    "notexec_init": ("may not be executed", "executable for everybody"),
    "bad_flag": ("does not know an option that it was given: --nosuchflag", "or newer"),
    "bad_cpus": ("takes no such value: 0-9999 for cpuset cpus", "suite.toml"),
    "no_container": ("the container is gone", "system prune"),
    "inspect_none": ("the container is gone", "system prune"),
}
# Nobody needs a meaning for these: we ask for no such thing. They are passed on as they are.
PASSED_ON = {
    "network_bad": "network",
    "device_missing": "/dev/nosuch",
}


def recorded(version):
    parts = re.split(r"^## (\w+)\n", (RECORDED / f"{version}.txt").read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def every(names):
    return [
        pytest.param(version.partition("-")[0], name, said, id=f"{version}-{name}")
        for version in ENGINES
        for name, said in recorded(version).items()
        if name in names
    ]


def test_every_recorded_refusal_is_looked_at_here():
    named = {name for version in ENGINES for name in recorded(version)}

    assert named == {*MEANINGS, *PASSED_ON}


@pytest.mark.parametrize(("engine", "name", "said"), every(MEANINGS))
def test_a_refusal_is_named_with_its_next_step(engine, name, said):
    what, then = MEANINGS[name]

    found = engine_errors.explain(engine, "create", said)

    assert found.startswith(f"`{engine} create`: ")
    before, _, after = found.partition("; ")
    assert what in before
    assert then in after
    assert "looks further" not in found


@pytest.mark.parametrize(("engine", "name", "said"), every(PASSED_ON))
def test_words_that_nobody_knows_are_passed_on(engine, name, said):
    found = engine_errors.explain(engine, "create", said)

    assert found.startswith(f"`{engine} create` failed: ")
    assert PASSED_ON[name] in found
    assert found.endswith(f"`ci-perf doctor --runner {engine}` looks further")
    assert "Error response from daemon" not in found
    assert "--help" not in found


# Read in issues of docker, NVIDIA's toolkit and moby, and in the source of containers/image: these
# versions could not be had here.
READ = {
    "docker_program": "the image has no program python3 to start",
    "docker_permission": "expected to be let in at unix:///var/run/docker.sock, found",
    "docker_no_daemon": "expected a running daemon at unix:///run/nothing.sock, found none",
    "docker_no_gpu_vendor": "was not given the NVIDIA toolkit",
    "docker_cdi_device": "no CDI specification knows nvidia.com/gpu=all",
    "docker_requirement": "newer NVIDIA driver than this host has: cuda>=12.8;",
    "podman_cdi_host_device": "names /dev/dri/renderD129, which this host does not have",
    "podman_digest": "is not what the digest names",
    "docker_rate_limit": "too many pulls",
    "docker_certificate": "certificate is not believed: certificate signed by unknown authority;",
    "docker_denied": "does not let us in, or has no such image",
}


def test_everything_that_was_read_is_looked_at_here():
    assert set(recorded("read")) == set(READ)


@pytest.mark.parametrize("name", READ)
def test_refusals_that_were_only_read_are_named_too(name):
    engine = name.partition("_")[0]

    assert READ[name] in engine_errors.explain(engine, "pull", recorded("read")[name])


def test_a_full_disk_is_named_before_the_mount_that_it_broke():
    said = 'error mounting "/srv" to rootfs at "/x": mkdir: no space left on device: unknown'

    assert "disk of the engine is full" in engine_errors.explain("docker", "start", said)


def test_an_engine_that_says_nothing_is_said_to_say_nothing():
    assert "it said nothing" in engine_errors.explain("podman", "start", "\n\n")


def test_warnings_are_not_the_reason():
    said = (
        'time="2026-01-01T00:00:00Z" level=warning msg="no space left on device?"\n'
        "WARNING: IPv4 forwarding is disabled. Networking will not work.\n"
        "Error: something else\n"
    )

    assert "something else" in engine_errors.explain("podman", "run", said)


def test_a_long_last_line_is_shortened_and_its_end_is_kept():
    found = engine_errors.explain("docker", "start", f"{'x' * 5000} the end")

    assert len(found) < 500
    assert "the end" in found


def test_foreign_braces_are_no_templates():
    said = 'Error: container name "{engine}{0}" is already in use'

    assert "a container {engine}{0} is there already" in engine_errors.explain("docker", "c", said)


@pytest.mark.parametrize("one", engine_errors.PATTERNS, ids=lambda one: one.what[:40])
def test_each_known_refusal_has_a_next_step_and_fills_its_template(one):
    names = {*one.pattern.groupindex, "engine", "it"}

    used = set(re.findall(r"\{(\w+)\}", one.what + one.next_step))

    assert one.next_step
    assert used <= names


def test_a_program_that_is_absent_is_named_with_the_way_without():
    assert "--runner local" in engine_errors.absent("podman")
