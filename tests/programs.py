"""Records of programs that name only what a test is about."""

import msgspec

from ci_perf.model.program import Program, ProgramFile, SameProgram, Touched


def a_program(workload="bert", **more):
    """A record of one source of which two units ran, and of one data file."""
    plain = Program(
        workload=workload,
        conditions="c" * 16,
        steps=3,
        files={
            "src/net.py": ProgramFile(blob="a" * 40, units={":": "1" * 16, "step": "2" * 16}),
            "data/labels.json": ProgramFile(blob="b" * 40),
        },
    )
    return msgspec.structs.replace(plain, **more)


def a_same_program(workload="bert", **more):
    """A workload that was not launched: 214 functions of 31 files and 2 data files."""
    plain = SameProgram(workload=workload, parameters={}, functions=214, files=31, data_files=2)
    return msgspec.structs.replace(plain, **more)


def a_touched(workload="bert", code="differs", detail="src/net.py: Net.forward differs", **more):
    """A workload that has to be measured."""
    return Touched(workload=workload, code=code, detail=detail, **more)
