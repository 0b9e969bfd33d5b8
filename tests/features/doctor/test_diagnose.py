"""What a host lacks, or what on it will disturb a measurement, is a warning."""

import pytest

from ci_perf.errors import ExitCode
from ci_perf.model.facts import Level
from tests.features.doctor import machines
from tests.features.doctor.machines import codes, diagnose, finding

MIB, GIB = 2**20, 2**30


@pytest.mark.parametrize(
    ("programs", "code"),
    [
        ({"transformers": None}, "transformers_missing"),
        ({"git": False}, "git_missing"),
        ({"c_compiler": False}, "compiler_missing"),
        ({"cxx_compiler": False}, "compiler_missing"),
    ],
)
def test_a_missing_program_is_a_warning(programs, code):
    diagnosis = diagnose(programs=machines.programs(**programs))

    assert finding(code, diagnosis).level is Level.WARNING
    assert diagnosis.exit_code == ExitCode.OK


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ({"temporary": machines.a_space("/tmp", free=2 * GIB - 1)}, "little_disk"),
        (
            {
                "container": "docker",
                "shared_memory": machines.a_space("/dev/shm", total=64 * MIB),
            },
            "small_shm",
        ),
        ({"cpu_pressure_percent": 35.0}, "noisy_machine"),
        ({"cpu_quota": 1.5}, "cpu_quota"),
    ],
)
def test_a_machine_that_will_disturb_a_measurement_is_a_warning(host, code):
    diagnosis = diagnose(host=machines.a_host(**host))

    assert finding(code, diagnosis).level is Level.WARNING


@pytest.mark.parametrize(
    "host",
    [
        {"temporary": machines.a_space("/tmp", free=2 * GIB)},
        {"shared_memory": machines.a_space("/dev/shm", total=64 * MIB)},  # no container
        {
            "container": "docker",
            "shared_memory": machines.a_space("/dev/shm", total=65 * MIB),
        },
        {"cpu_pressure_percent": 10.0},
        {"cpu_quota": 8.0},
    ],
)
def test_a_machine_on_the_good_side_of_a_border_is_left_in_peace(host):
    assert codes(diagnose(host=machines.a_host(**host))) == ["cpu_works", "cuda_works"]


@pytest.mark.parametrize(
    ("code", "host", "words"),
    [
        (
            "noisy_machine",
            {"cpu_pressure_percent": 10.040000000000001},
            "In 10.04 % of the last 10 s some task waited for a core (expected at most 10 %)",
        ),
        (
            "little_disk",
            {"temporary": machines.a_space("/tmp", free=2 * GIB - 1)},
            "/tmp has 2047 MiB free: expected at least 2048 MiB",
        ),
        ("cpu_quota", {"cpu_quota": 1.0}, "The CPU quota is 1 of 8 cores"),
    ],
)
def test_what_is_just_beyond_a_border_does_not_read_as_the_border(code, host, words):
    assert finding(code, diagnose(host=machines.a_host(**host))).what.startswith(words)


def test_what_the_system_does_not_say_is_no_finding():
    unknown = dict.fromkeys(
        ("cpu_model", "cpu_pressure_percent", "memory_bytes", "temporary", "shared_memory")
    )

    assert codes(diagnose(host=machines.a_host(**unknown))) == ["cpu_works", "cuda_works"]
