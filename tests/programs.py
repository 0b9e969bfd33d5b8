"""Records of programs that name only what a test is about."""

import msgspec

from ci_perf.model.program import Program, SameProgram, Touched


def a_program(workload="bert", **more):
    """A record of one Python file and of one data file."""
    plain = Program(
        workload=workload,
        conditions="c" * 16,
        paths={"src/net.py": f"code {'a' * 40}", "data/labels.json": f"file {'b' * 40}"},
    )
    return msgspec.structs.replace(plain, **more)


def a_same_program(workload="bert", **more):
    """A workload that was not launched: 33 files."""
    plain = SameProgram(workload=workload, parameters={}, files=33)
    return msgspec.structs.replace(plain, **more)


def a_touched(workload="bert", code="differs", detail="src/net.py differs", **more):
    """A workload that has to be measured."""
    return Touched(workload=workload, code=code, detail=detail, **more)
