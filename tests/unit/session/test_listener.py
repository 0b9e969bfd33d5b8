"""Who hears of a session."""

import inspect

from ci_perf.session import Listener, several
from tests.sessions import Recorder


def test_several_listeners_hear_the_same():
    first, second = Recorder(), Recorder()

    together = several(first, second)

    together.started("mlp", 1, 2)
    assert first.heard == second.heard == [("started", "mlp", 1, 2)]
    for name, _ in inspect.getmembers(Listener, inspect.isfunction):
        assert getattr(together, name) is not getattr(Listener, name)
