"""What a recording launch finds out about a program, for real: small projects, one process each."""

import itertools

import msgspec
import pytest

from ci_perf.launch.local import LocalLauncher
from ci_perf.measuring.recording import Steps
from ci_perf.model.program import blob, listing
from ci_perf.model.task import MachineDescription
from ci_perf.program import proof
from ci_perf.workload import Workload
from tests.launches import BUILD, HEAD, PASS, a_task, result_of


@pytest.fixture
def record(tmp_path):
    """Record a workload that consists of this source, in a repository with these files."""

    def launch(source, *, steps=0, timeout_s=120, environment=None, files=(), links=(), **more):
        root = tmp_path / "repository"
        root.mkdir(exist_ok=True)
        for name, text in {"it.py": source, **dict(files)}.items():
            path = root / name
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_text(text)
        for name, target in dict(links).items():
            (root / name).symlink_to(target)
        protocol = {"timeout_s": timeout_s, "monitor_hz": 0}
        recording = {"record": True, "record_steps": steps}
        task = a_task(root / "it.py", protocol=protocol, workload=more, **recording)
        program = result_of(LocalLauncher(root, environment).launch(task)).program
        assert program is not None
        return program

    return launch


def units(program, path):
    return sorted(program.files[path].units or ["as a whole"])


def test_functions_that_are_executed_are_recorded_and_others_are_not(record):
    package = '''
"""Two functions, a class."""
import functools
def used(x): return [inner for inner in map(lambda y: y, [x])]
def never(): pass
@functools.cache
def cached(): yield 1
class Net:
    """A network."""
    numbers = [n for n in range(3)]
    def forward(self):
        def inner(): return 1
        return inner()
    def backward(self): pass
def __getattr__(name):
    if name != "answer": raise AttributeError(name)
    return 42
'''
    source = f"""
{HEAD}
import package
def step():
    import package.late
    package.used(1), list(package.cached()), package.Net().forward(), package.answer
"""

    program = record(
        source + BUILD, files={"package/__init__.py": package, "package/late.py": "X = 1\n"}
    )

    assert program.obstacles == ()
    expected = [":", "Net.forward", "Net:", "__getattr__", "cached", "used"]
    assert units(program, "package/__init__.py") == expected
    assert units(program, "package/late.py") == [":"]
    assert units(program, "it.py") == [":", "build", "step"]
    assert "late" in program.searches["package"].names
    assert program.searches["package"].entries == ("late.py",)
    assert program.searches[""].entries == ("package",)


def test_functions_of_threads_and_of_forked_children_are_recorded(record):
    source = f"""
{HEAD}
import _thread, os, threading, time
def in_thread(): pass
def in_bare_thread(): done.append(1)
def in_child(): open("read.txt").read()
done = []
def step():
    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    if done:
        return
    _thread.start_new_thread(in_bare_thread, ())
    while not done: time.sleep(0.01)
    if os.fork() == 0:
        in_child()
        os._exit(0)
    os.wait()
"""
    program = record(source + BUILD, files={"read.txt": "hello\n"})

    assert program.obstacles == ()
    assert {"in_thread", "in_bare_thread", "in_child"} <= {*units(program, "it.py")}
    assert program.files["read.txt"].blob == blob(b"hello\n")


def test_a_function_of_a_thread_that_never_returns_is_recorded(record):
    source = f"""
{HEAD}
import threading, time
begun = threading.Event()
def called(): begun.set()
def forever():
    while True:
        called()
        time.sleep(0.01)
def step():
    threading.Thread(target=forever, daemon=True).start()
    begun.wait()
"""
    program = record(source + BUILD)

    assert {"called", "forever"} <= {*units(program, "it.py")}


def test_code_that_somebody_holds_counts_as_executed_in_as_many_steps_as_are_wanted(record):
    source = f"{HEAD}{PASS}def held(): pass\ndef free(): pass\nC = held.__code__\n{BUILD}"

    program = record(source, steps=2000)

    assert units(program, "it.py") == [":", "build", "held", "step"]
    assert program.steps >= 2000
    assert program.obstacles == ()


def test_files_folders_links_and_what_is_not_there_are_recorded(record):
    source = f"""
{HEAD}{PASS}
import os, pathlib
open("data/read.txt").read()
os.listdir("data")
os.path.exists("data/asked.txt"), os.path.exists("data/absent.txt")
pathlib.Path("other/absent.txt").is_file(), os.path.isdir("other")
os.path.getsize("data/sized.txt")
open("made.txt", "w").close()
open("made.txt").close()
open("link/linked.txt").close()
"""
    names = ("read", "asked", "sized", "linked", "alone")
    files = {f"data/{name}.txt": name for name in names} | {"other/x": ""}

    program = record(source + BUILD, files=files, links={"link": "data"})

    assert program.obstacles == ()
    whole = {name for name, file in program.files.items() if file.units is None}
    assert whole == {"data/read.txt", "data/sized.txt", "link/linked.txt"}
    assert program.files["data/asked.txt"].units == {}
    assert program.absent == ("data/absent.txt", "other/absent.txt")
    assert program.folders == {"data": listing(f"{name}.txt" for name in names), "other": ""}
    assert program.links == {"link": blob(b"data")}


def test_what_a_program_does_beyond_files_is_an_obstacle(record):
    source = f"""
{HEAD}{PASS}
import os, socket, subprocess, sys
subprocess.run(["true"])
socket.socket().connect_ex(("127.0.0.1", 9))
for name in os.environ: pass
"""
    program = record(source + BUILD)

    assert program.obstacles == (
        "the program opens a socket, to ('127.0.0.1', 9)",
        "the program reads the whole environment (os.environ)",
        "the program starts another one, true",
    )


def test_variables_that_are_read_are_recorded(record):
    line = "import os; os.environ.get('ONE'), os.getenv('TWO'), 'THREE' in os.environ\n"
    variables = {"ONE": "1", "UNREAD": "1", "OMP_PROC_BIND": "1"}

    program = record(HEAD + PASS + line + BUILD, environment=variables)

    assert program.variables["ONE"]
    assert program.variables["OMP_PROC_BIND"]
    assert program.variables["TWO"] == program.variables["THREE"] == ""
    assert "UNREAD" not in program.variables
    assert "OMP_NUM_THREADS" not in program.variables


@pytest.mark.parametrize(
    "line",
    [
        *("import sys; sys._getframe().f_lineno", "step.__doc__", "getattr(step, '__doc__')"),
        "open(__file__).read()",
    ],
)
def test_sources_count_as_a_whole_where_positions_or_docstrings_are_visible(record, line):
    program = record(f"{HEAD}{PASS}{line}\n{BUILD}")

    assert program.files["it.py"].units is None


QUOTED = ("warnings.warn('text')", "import torch")


@pytest.mark.parametrize("lines", QUOTED)
def test_a_source_whose_lines_are_only_quoted_does_not_count_as_a_whole(record, lines):
    program = record(
        f"{HEAD}{PASS}import inspect, linecache, traceback, warnings\n{lines}\n{BUILD}"
    )

    assert program.obstacles == ()
    assert units(program, "it.py") == [":", "build", "step"]


@pytest.mark.parametrize(
    "line",
    [
        "inspect.getsource(step)",
        "linecache.getline(__file__, 1)",
        "linecache.updatecache(__file__)",
        "traceback.format_stack()",
        "warnings.formatwarning('text', Warning, __file__, 1)",
        "import torch; torch.jit.script(add)",
    ],
)
def test_a_source_whose_lines_may_act_counts_as_a_whole(record, line):
    helper = f"import inspect, linecache, traceback, warnings\n{PASS}def add(x): return x + x\n"
    helper += f"def act(): {line}\n"
    source = f"{HEAD}{PASS}import warnings, helper\nwarnings.warn('text')\nhelper.act()\n{BUILD}"

    program = record(source, files={"helper.py": helper.replace("__file__", '"it.py"')})

    assert {"it.py", "helper.py"} & {n for n, f in program.files.items() if f.units is None}


def test_a_recording_that_takes_too_long_is_cut(record):
    slow = "import time\ndef step(): time.sleep(0.01)\n"
    program = record(f"{HEAD}{slow}{BUILD}", steps=100_000)

    assert program.steps < 100_000
    assert [" of 100000 steps" in obstacle for obstacle in program.obstacles] == [True]


def test_the_last_steps_end_when_any_rank_has_no_time_left():
    clock = itertools.count()
    steps = Steps(100, clock=lambda: next(clock))

    steps.go_on(steps.counted(Workload(step=int)).step, 10.0, slowest=float)

    assert steps.obstacle == "recording was cut after 10 of 100 steps"


def test_a_recording_may_take_longer_than_a_launch_that_is_timed(record):
    slow = "import time\ntime.sleep(2)\n"

    assert record(f"{HEAD}{PASS}{slow}{BUILD}", timeout_s=1.9).obstacles == ()


def test_python_that_a_native_thread_calls_makes_every_file_count_as_a_whole(record):
    source = f"""{HEAD}
import ctypes
def called(_): return 0
CALLED = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(called)
def step():
    thread, libc = ctypes.c_ulong(), ctypes.CDLL(None)
    libc.pthread_create(ctypes.byref(thread), None, CALLED, None)
    libc.pthread_join(thread, None)
{BUILD}"""

    assert record(source).files["it.py"].units is None


def test_a_backward_that_autograd_moves_to_a_thread_of_its_own_is_not_lost(record):
    source = f"""{HEAD}
import torch
class Nested(torch.autograd.Function):
    @staticmethod
    def forward(context, value, depth):
        context.depth = depth
        return value.clone()
    @staticmethod
    def backward(context, gradient):
        if context.depth:
            with torch.enable_grad():
                value = torch.ones(1, requires_grad=True)
                Nested.apply(value, context.depth - 1).sum().backward()
        else:
            innermost()
        return gradient, None
def innermost(): return 1
def step():
    value = torch.ones(1, requires_grad=True)
    Nested.apply(value, 90).sum().backward()
{BUILD}"""

    recorded = record(source).files["it.py"].units
    assert recorded is None or "innermost" in recorded


def test_who_scans_a_folder_or_asks_below_it_learns_what_its_entries_are(record):
    source = f"""{HEAD}
import os
def step():
    sum(entry.stat().st_size for entry in os.scandir("data"))
    folder = os.open("other", os.O_RDONLY)
    os.stat("a", dir_fd=folder)
    os.close(folder)
{BUILD}"""
    program = record(source, files={"data/a": "12", "data/more/b": "34", "other/a": "56"})

    assert program.files["data/a"].units is None
    assert "other/a" in program.files
    assert program.folders["data"] == listing(["a", "more"])
    assert "data/more" in program.folders
    assert "data/more/b" not in program.files


def test_what_torchrun_sets_is_no_condition_of_a_record(record, tmp_path):
    source = f"{HEAD}import torch.distributed\n{PASS}{BUILD}"
    program = record(source, launch="torchrun", world_size=2)

    assert program.obstacles == ()
    machine = LocalLauncher(tmp_path).describe("cpu", threads=1, devices=1)
    assert isinstance(machine, MachineDescription)
    known = msgspec.structs.replace(program, conditions="0" * 16)
    assert proof.other_conditions(known, "0" * 16, machine.variables) == ""


def test_a_rank_does_not_take_what_another_one_opens_to_watch_it(record):
    """Else no file could come to the repository without the ranks being another program."""
    source = f"{HEAD}import torch.distributed\n{PASS}{BUILD}"
    files = {"a/b/notes.txt": "", "data/c/used": "1", "first.txt": ""}
    used = "def step():\n    torch.from_file('data/c/used', size=1, dtype=torch.uint8)\n"

    program = record(source.replace(PASS, used), launch="torchrun", world_size=2, files=files)

    assert program.obstacles == ()
    assert set(program.files) == {"it.py", "data/c/used"}
    assert not any(program.folders.values())


def test_a_profiler_that_a_module_of_the_repository_sets_is_an_obstacle_whatever_its_name(record):
    """Its own threading.py is not the standard library's, which hands the profiler on."""
    source = f"{HEAD}from own import threading\n{PASS}{BUILD}"
    files = {"own/threading.py": "import sys\nsys.setprofile(lambda *_: None)\n"}

    program = record(source, files=files)

    assert "the program uses a profiler of Python calls itself" in program.obstacles
