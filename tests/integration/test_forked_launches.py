"""Launches that are forked from one process, which has imported and prepared the workload file."""

import contextlib
import os

import msgspec
import pytest

from ci_perf.launch.local import LocalLauncher
from tests.launches import HEAD, a_task, failure_of, result_of
from tests.processes import is_alive, wait_until

PREPARED = f"""{HEAD}
import os, pathlib
pathlib.Path("imported").open("a").write("i")
changed = []

def prepare(words):
    pathlib.Path("prepared").open("a").write(words[0])

def step():
    pass

def build(context):
    assert not changed, "by another launch"
    changed.append(1)
    if context.parameters.get("dies"):
        os._exit(7)
    return Workload(step=step)
"""


@pytest.fixture
def launcher(tmp_path):
    with contextlib.closing(LocalLauncher(tmp_path)) as made:
        yield made


@pytest.fixture
def workload(tmp_path):
    (tmp_path / "it.py").write_text(PREPARED)
    return tmp_path / "it.py"


def forked(file, *, index=0, spread=0.005, **parameters):
    fields = {"launch": "fork", "collects": ("p",), "parameters": parameters}
    protocol = {"monitor_hz": 0, "launch_spread": spread}
    return a_task(file, workload=fields, index=index, protocol=protocol)


@pytest.mark.story
def test_launches_share_the_imports_and_no_state_however_long_they_time(launcher, workload):
    for spread in (0.005, 0.005, 0.02):
        result_of(launcher.launch(forked(workload, spread=spread)))

    assert (workload.parent / "imported").read_text() == "i"
    assert (workload.parent / "prepared").read_text() == "p"


def test_a_path_that_the_file_has_changed_stays_in_its_forks(launcher, workload):
    """A `conftest.py` puts its folder first."""
    begin = "import sys\nsys.path[:] = ['x', *sys.path, 'x']\n"
    checks = "    assert (sys.path[0], sys.path[-1]) == ('x', 'x')\n    assert not changed"
    workload.write_text(begin + PREPARED.replace("    assert not changed", checks))

    assert result_of(launcher.launch(forked(workload))).forked


def test_launches_that_are_compared_as_independent_ones_share_nothing(launcher, workload):
    for index in range(2):
        result_of(launcher.launch(forked(workload, index=index)))

    assert (workload.parent / "imported").read_text() == "ii"


def test_one_that_dies_costs_no_other(launcher, workload):
    died = failure_of(launcher.launch(forked(workload, dies=True)))

    assert "7" in died.reason
    result_of(launcher.launch(forked(workload)))


def test_two_of_them_take_turns(launcher, workload):
    for outcome in launcher.launch_pair(forked(workload), forked(workload)):
        assert result_of(outcome).process.timed.block_s


def test_where_a_thread_would_be_missing_each_launch_has_its_own_imports(launcher, workload):
    thread = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True)"
    workload.write_text(f"{PREPARED}\n{thread}.start()\n")

    result_of(launcher.launch(forked(workload)))

    assert (workload.parent / "prepared").read_text() == "p"
    assert (workload.parent / "imported").read_text() == "ii"

    result_of(launcher.launch(forked(workload, index=1)))

    # No other server imports for nothing.
    assert (workload.parent / "imported").read_text() == "iii"


def test_tests_that_have_threads_are_not_imported_in_vain(launcher, workload):
    task = forked(workload)
    known = msgspec.structs.replace(task.workload, has_threads=True)

    result_of(launcher.launch(msgspec.structs.replace(task, workload=known)))

    assert (workload.parent / "imported").read_text() == "i"
    assert not (workload.parent / "prepared").exists()


# Whoever collects waits for the other side, and notes where it does not come.
MEETING = """
import threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()

def prepare(words):
    here = pathlib.Path("meeting")
    if here.exists():
        (here / str(os.getpid())).touch()
        end = time.monotonic() + 20
        while len([*here.iterdir()]) < 2:
            assert time.monotonic() < end
            time.sleep(0.01)
        pathlib.Path("met").open("a").write(words[0])
"""


def test_both_sides_of_a_pair_that_is_not_forked_collect_at_once(launcher, workload):
    workload.write_text(f"{PREPARED}\n{MEETING}")
    result_of(launcher.launch(forked(workload, node="a")))
    (workload.parent / "meeting").mkdir()

    for outcome in launcher.launch_pair(*[forked(workload, node="a")] * 2):
        result_of(outcome)

    assert (workload.parent / "met").read_text() == "aa"


def test_one_that_hangs_is_ended_with_its_stack(launcher, workload):
    workload.write_text(f"{PREPARED}\nimport time\n".replace("    pass", "    time.sleep(60)"))
    protocol = {"monitor_hz": 0, "timeout_s": 1.0}
    task = a_task(workload, workload={"launch": "fork", "collects": ("p",)}, protocol=protocol)

    failure = failure_of(launcher.launch(task))

    assert "no result within the time limit" in failure.reason
    assert "in step" in failure.output


def test_a_server_ends_with_its_launcher(workload):
    with contextlib.closing(LocalLauncher(workload.parent)) as launcher:
        result_of(launcher.launch(forked(workload)))
        (server,) = launcher._servers.values()
        assert server._process.poll() is None

    assert server._process.returncode is not None


def test_other_tests_to_collect_have_a_server_of_their_own(launcher, workload):
    for words in (("p",), ("q",)):
        task = forked(workload)
        fields = msgspec.structs.replace(task.workload, collects=words)
        result_of(launcher.launch(msgspec.structs.replace(task, workload=fields)))

    assert (workload.parent / "prepared").read_text() == "pq"


def test_a_server_that_has_ended_is_replaced(launcher, workload):
    result_of(launcher.launch(forked(workload)))
    (server,) = launcher._servers.values()
    server._process.kill()
    server._process.wait()

    result_of(launcher.launch(forked(workload)))

    assert (workload.parent / "prepared").read_text() == "pp"


def test_imports_that_take_too_long_fork_nothing(launcher, workload):
    workload.write_text(f"{PREPARED}\nimport time\ntime.sleep(60)\n")
    task = a_task(
        workload,
        workload={"launch": "fork", "collects": ("p",)},
        protocol={"monitor_hz": 0, "timeout_s": 1.0},
    )

    failure = failure_of(launcher.launch(task))

    assert "no result within the time limit" in failure.reason
    assert not (workload.parent / "prepared").exists()


def test_nothing_is_left_of_what_the_imports_have_started(workload):
    starts = "import subprocess\nchild = subprocess.Popen(['sleep', '900'], start_new_session=True)"
    workload.write_text(f"{PREPARED}\n{starts}\npathlib.Path('pid').write_text(str(child.pid))\n")
    with contextlib.closing(LocalLauncher(workload.parent)) as launcher:
        result_of(launcher.launch(forked(workload)))
        pid = int((workload.parent / "pid").read_text())
        assert is_alive(pid)

    wait_until(lambda: not is_alive(pid))  # what is killed still ends


LIBRARY = """
import os, pathlib
pathlib.Path(os.environ["NOTED"]).open("a").write("i")
"""
USER = f"""import a_library
{HEAD}
import os, sys, pathlib

def step():
    pass

def build(context):
    pathlib.Path(context.parameters["to"]).write_text(f"{{os.getppid()}} {{sys.path}}")
    return Workload(step=step)
"""


THREAD = "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"


@pytest.fixture(autouse=True)
def library(tmp_path, monkeypatch):
    """An installed library; its imports are noted."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "a_library.py").write_text(LIBRARY)
    monkeypatch.setenv("NOTED", str(tmp_path / "noted"))
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    return folder / "a_library.py"


@pytest.fixture
def imports(tmp_path):
    """Return what was noted of the imports of the library."""
    return (tmp_path / "noted").read_text


def using(folder, name, text=USER, **more):
    """A launch of a workload that may be forked from a process with the library."""
    root = folder / "repository"
    root.mkdir(exist_ok=True)
    (root / f"{name}.py").write_text(text)
    fields = {"parameters": {"to": str(folder / f"{name}.built")}}
    return a_task(root / f"{name}.py", workload=fields, libraries=("a_library",), **more)


def test_workloads_of_a_pair_number_share_the_import_of_libraries(tmp_path, launcher, imports):
    results = [result_of(launcher.launch(using(tmp_path, name))) for name in "ab"]

    assert imports() == "i"
    assert [result.forked for result in results] == [True, True]
    assert [result.program for result in results] == [None, None]
    (parent, *_), (other, *_) = ((tmp_path / f"{n}.built").read_text().split() for n in "ab")
    assert parent == other


def test_a_forked_workload_finds_its_modules_as_a_fresh_one_does(tmp_path, launcher, imports):
    result_of(launcher.launch(using(tmp_path, "a")))
    fresh = msgspec.structs.replace(using(tmp_path, "b"), libraries=())

    assert not result_of(launcher.launch(fresh)).forked
    assert imports() == "ii"
    assert len({(tmp_path / f"{n}.built").read_text().partition(" ")[2] for n in "ab"}) == 1


def test_a_fresh_launch_between_two_forked_ones_ends_no_server(tmp_path, launcher, imports):
    fresh = msgspec.structs.replace(using(tmp_path, "b"), libraries=())
    for task in (using(tmp_path, "a"), fresh, using(tmp_path, "b")):
        result_of(launcher.launch(task))

    assert imports() == "ii"


def test_servers_give_way_to_launches_that_need_their_memory(tmp_path, launcher):
    result_of(launcher.launch(using(tmp_path, "a")))
    (server,) = launcher._servers.values()

    assert launcher.free_memory()

    assert server._process.returncode is not None
    assert not launcher.free_memory()


def test_code_of_the_other_side_that_a_forked_step_imports_is_refused(tmp_path, launcher):
    other = tmp_path / "other"
    other.mkdir()
    (other / "its.py").touch()
    text = USER.replace("    pass", f"    sys.path.append({str(other)!r}); import its")
    failure = failure_of(launcher.launch(using(tmp_path, "a", text, foreign_root=str(other))))

    assert launcher._forking
    assert "found code of the other side" in failure.reason


def test_two_pairs_of_a_side_share_no_server(tmp_path, launcher, imports):
    for index in range(2):
        result_of(launcher.launch(using(tmp_path, "a", index=index)))

    assert imports() == "ii"


@pytest.mark.parametrize(
    "text",
    [
        f"{LIBRARY}\nimport threading, time\n{THREAD}\n",
        f"{LIBRARY}\nimport sys\nif 'fork_server' in str(sys.argv): raise ValueError\n",
        f"{LIBRARY}\nimport sys\nif 'fork_server' in str(sys.argv): sys.exit(0)\n",
    ],
    ids=["starts a thread", "fails", "ends the process"],
)
def test_where_libraries_cannot_be_imported_ahead_launches_are_fresh(
    tmp_path, launcher, library, text
):
    library.write_text(text)

    assert not result_of(launcher.launch(using(tmp_path, "a"))).forked


def test_servers_that_do_not_fit_into_memory_are_not_started(tmp_path):
    with contextlib.closing(LocalLauncher(tmp_path, servers_at_once=lambda _: 1)) as launcher:
        tasks = [using(tmp_path, "a"), using(tmp_path, "b", index=1)]
        outcomes = launcher.launch_pair(*tasks)

        assert [result_of(outcome).forked for outcome in outcomes] == [False, False]
        assert not launcher._servers


# A fork that has left the group of its worker has all files that this one had.
KILLS = """
    import time
    begun, begin = os.pipe()
    if not os.fork():
        os.setsid()
        os.write(begin, b".")
        time.sleep(60)
        os._exit(0)
    os.read(begun, 1)
    os.kill(os.getppid(), 9)
    os.kill(os.getpid(), 9)
"""


def test_a_server_that_is_killed_while_it_forks_fails_its_launches_alone_and_at_once(tmp_path):
    """The kernel kills it where memory runs out: it has imported most of what is there."""
    with contextlib.closing(LocalLauncher(tmp_path)) as launcher:
        failure = failure_of(launcher.launch(using(tmp_path, "a", USER.replace("    pass", KILLS))))

        assert "SIGKILL" in failure.reason
        assert result_of(launcher.launch(using(tmp_path, "b"))).forked


def test_what_a_forked_process_spawns_finds_the_workload_file(tmp_path, launcher):
    text = USER.replace(
        "    pass",
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        assert pool.apply(Reply()) == 3",
    )
    text = text.replace(
        "import os,",
        "import multiprocessing\n\nclass Reply:\n    def __call__(self):\n        return 3\n"
        "\nimport os,",
    )
    protocol = {"warmup_min_s": 0.0, "timed_min_blocks": 2}

    assert result_of(launcher.launch(using(tmp_path, "a", text, protocol=protocol))).forked


@pytest.mark.parametrize("sets", ["os.environ['ATEN_CPU_CAPABILITY'] = 'default'\n", ""])
def test_a_variable_that_a_file_sets_after_its_libraries_still_counts(tmp_path, launcher, sets):
    """Torch reads it with its first operator, which no server runs."""
    text = USER.replace("import a_library\n", f"import torch\nimport os\n{sets}").replace(
        "os.getppid()", "torch.backends.cpu.get_cpu_capability()"
    )
    task = msgspec.structs.replace(using(tmp_path, "a", text), libraries=("torch",))

    assert result_of(launcher.launch(task)).forked
    assert (tmp_path / "a.built").read_text().startswith("DEFAULT ") == bool(sets)


TRAINS = f"""{HEAD}
import importlib.machinery, os, pathlib, sys
import torch
pathlib.Path(__file__).with_suffix(".had").write_text(str("torch._dynamo" in sys.modules))

class Finder:
    def find_spec(self, *words):
        return importlib.machinery.PathFinder.find_spec(*words)

def build(context):
    layer = torch.nn.Linear(2, 2)
    OPTIMIZER
    return Workload(step=lambda: layer(torch.ones(2)))
"""
LATE = ("torch._dynamo",)


@pytest.mark.parametrize(
    ("optimizer", "late"),
    [
        ("torch.optim.SGD(layer.parameters(), lr=0.1)", LATE),
        ("pass", ()),
        ("os.environ['TORCHDYNAMO_X'] = '1'; torch.optim.SGD(layer.parameters(), lr=0.1)", ()),
        ("sys.path.append('x'); torch.optim.SGD(layer.parameters(), lr=0.1)", ()),
        # Put back, and a module that stands in for it.
        ("os.environ['X'] = '1'; import torch._dynamo as _; del os.environ['X']", ()),
        ("sys.modules['torch._dynamo'] = sys", ()),
        ("sys.meta_path.insert(0, Finder()); import torch._dynamo as _", ()),
    ],
)
def test_what_an_optimizer_imports_may_come_before_the_fork(tmp_path, launcher, optimizer, late):
    """Unless the author has changed what is read when it is imported."""
    task = using(tmp_path, "a", TRAINS.replace("OPTIMIZER", optimizer))
    had = tmp_path / "repository/a.had"

    fresh = result_of(launcher.launch(msgspec.structs.replace(task, libraries=())))
    assert (fresh.late_libraries, had.read_text()) == (late, "False")

    shares = msgspec.structs.replace(task, libraries=("torch", *late))
    assert result_of(launcher.launch(shares)).forked
    assert had.read_text() == str(bool(late))
