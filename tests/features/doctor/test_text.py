"""A person reads first what can be measured, then the machine, then what to do."""

from pathlib import Path

import pytest

from ci_perf.features.doctor import text as doctor_text
from ci_perf.features.doctor.diagnosis import diagnose
from ci_perf.model import facts
from ci_perf.model.run import Tool
from tests.features.doctor import machines
from tests.reviewed import assert_all_reviewed

GOLDEN = Path(__file__).parent / "golden/machines.txt"


def render(*, colour=False, **machine):
    diagnosis = diagnose(machines.a_machine(**machine), Tool(version="0.1.0"))
    return doctor_text.render(diagnosis, colour=colour)


SHAPES = {
    "a machine with a GPU": {},
    "nothing can be measured": {"torch": facts.TorchMissing()},
    "within a container": {
        "host": machines.a_host(container="docker", usable_cores=2),
        "graphics": machines.no_graphics(pci=("0000:01:00.0",)),
    },
    "what is not known": {"host": machines.a_host(cpu_model=None, memory_bytes=None)},
    "measures in containers": {"containers": machines.containers()},
    "an engine that does not answer": {
        "containers": machines.containers(
            engine="podman", version="", image="", problem=facts.problem("x", "It is not.", "Do.")
        ),
        "torch": facts.TorchMissing(),
    },
}


def test_machines_read_as_reviewed():
    assert_all_reviewed({name: render(**machine) for name, machine in SHAPES.items()}, GOLDEN)


@pytest.mark.parametrize("words", ["[red]", "[/]", ":smile:"])
def test_words_of_the_machine_are_not_taken_for_markup(words):
    assert words in render(host=machines.a_host(cpu_model=words))


def test_colours_are_for_terminals_only(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")

    assert "\x1b[" in render(colour=True)
    assert "\x1b[" not in render(colour=False)
