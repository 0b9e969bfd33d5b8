"""What a launch records of the files that it uses: small projects, one process each."""

import os
import shutil
import threading
from pathlib import Path

import msgspec
import pytest

import ci_perf
from ci_perf.launch.local import LocalLauncher
from ci_perf.model.program import blob
from ci_perf.model.task import MachineDescription
from ci_perf.same_program import proof
from tests.launches import BUILD, HEAD, PASS, a_task, result_of


def list_paths(program, *beginnings):
    """Return the paths of which a record tells what begins so."""
    return {path for path, state in program.paths.items() if state.startswith(beginnings)}


@pytest.fixture
def record(tmp_path):
    """Record a workload that consists of this source, in a repository with these files."""

    def launch(source, *, environment=None, files=(), links=(), **more):
        root = tmp_path / "repository"
        for name, text in {"it.py": source, **dict(files)}.items():
            path = root / name
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_text(text)
        for name, target in dict(links).items():
            (root / name).symlink_to(target)
        protocol = {"timeout_s": 120, "monitor_hz": 0}
        task = a_task(root / "it.py", protocol=protocol, workload=more)
        environment = {**os.environ, **(environment or {})}
        return result_of(LocalLauncher(root, environment).launch(task)).program

    return launch


def test_files_folders_links_and_what_is_not_there_are_recorded(record):
    source = f"""
{HEAD}{PASS}
import os, pathlib, tempfile
open("data/read.txt").read()
os.listdir("data")
os.path.exists("data/asked.txt"), os.path.exists("data/absent.txt")
pathlib.Path("other/absent.txt").is_file(), os.path.isdir("other")
os.path.getsize("data/sized.txt")
made = tempfile.mkdtemp() + "/made.txt"
open(made, "w").close()
open(made).close()
open("link/linked.txt").close()
"""
    names = ("read", "asked", "sized", "linked", "alone")
    files = {f"data/{name}.txt": name for name in names} | {"other/x": ""}

    program = record(source + BUILD, files=files, links={"link": "data"})

    assert program.obstacles == ()
    whole = {f"data/{name}.txt" for name in ("read", "sized", "linked")}
    assert list_paths(program, "file ") == whole
    assert list_paths(program, "code ") == {"it.py"}
    assert program.paths["data/asked.txt"] == "file"
    assert "absent.txt" in program.searches["data"]
    assert program.searches["other"] == ("absent.txt",)
    assert list_paths(program, "folder ") == {"data"}
    assert program.paths["other"] == "folder"
    assert program.paths["link"] == f"link {blob(b'data')}"
    assert not [path for path in program.outside if path.endswith("/made.txt")]


def test_what_a_program_does_beyond_files_is_an_obstacle(record):
    source = f"""
{HEAD}{PASS}
import os, socket, subprocess, sys
subprocess.run(["true"])
socket.socket().connect_ex(("127.0.0.1", 9))
for name in os.environ: pass
"""
    assert record(source + BUILD).obstacles == (
        "it opens a socket, to ('127.0.0.1', 9)",
        "it reads the whole environment (os.environ)",
        "it starts another program, true",
    )


def test_that_a_server_is_asked_whether_it_is_ready_is_no_obstacle(record):
    source = f"""
{HEAD}{PASS}
import sys, tempfile
from ci_perf.measuring.server import Server, find_free_port
port = find_free_port()
words = f"{{sys.executable}} -m http.server {{port}}"
server = Server(words, f"http://localhost:{{port}}/", 60, tempfile.TemporaryFile("w+"))
server.start()
server.stop()
"""
    program = record(source + BUILD)

    assert not [text for text in program.obstacles if "socket" in text]
    assert any(text.startswith("it starts another program") for text in program.obstacles)


def test_variables_that_are_read_are_recorded(record):
    line = "import os; os.environ.get('ONE'), os.getenv('TWO'), 'THREE' in os.environ\n"
    variables = {"ONE": "1", "UNREAD": "1", "OMP_PROC_BIND": "1"}

    program = record(HEAD + PASS + line + BUILD, environment=variables)

    assert program.variables["ONE"]
    assert program.variables["OMP_PROC_BIND"]
    assert program.variables["TWO"] == program.variables["THREE"] == ""
    assert "UNREAD" not in program.variables
    assert "OMP_NUM_THREADS" not in program.variables


def test_what_threads_and_forked_children_use_is_recorded_also_of_one_that_is_killed(record):
    source = f"""
{HEAD}
import os, signal, threading
def step():
    thread = threading.Thread(target=lambda: open("thread.txt").read())
    thread.start()
    thread.join()
    if os.fork() == 0:
        import late
        open("child.txt").read()
        os.kill(os.getpid(), signal.SIGKILL)
    os.wait()
"""
    files = {"thread.txt": "1", "child.txt": "2", "late.py": ""}

    program = record(source + BUILD, files=files)

    assert program.obstacles == ()
    assert list_paths(program, "file", "code") == {"it.py", *files}
    assert list_paths(program, "code") == {"it.py", "late.py"}


def test_an_installed_ci_perf_records_what_a_forked_child_uses(record, tmp_path):
    site = tmp_path / "venv/site-packages"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(ci_perf.__file__).parent, site / "ci_perf", ignore=ignored)
    source = f"""
{HEAD}
import os
def step():
    if os.fork() == 0:
        open("child.txt").read()
        os._exit(0)
    os.wait()
"""
    files, environment = {"child.txt": "1"}, {"PYTHONPATH": str(site)}

    program = record(source + BUILD, files=files, environment=environment)

    assert program.obstacles == ()
    assert list_paths(program, "file", "code") == {"it.py", "child.txt"}


def test_a_log_that_another_program_writes_into_the_repository_is_no_input(record, tmp_path):
    log, is_over = tmp_path / "repository/check.log", threading.Event()
    log.parent.mkdir()

    def write(file):
        while not is_over.wait(0.01):
            file.write("line")
            file.flush()

    with log.open("w") as file:
        thread = threading.Thread(target=write, args=(file,))
        thread.start()
        program = record(HEAD + PASS + BUILD)
        is_over.set()
        thread.join()

    assert program.obstacles == ()
    assert list_paths(program, "file", "code") == {"it.py"}


@pytest.mark.parametrize(
    "line",
    [
        "linecache.getline(__file__, 1)",
        "linecache.updatecache(__file__)",
        "traceback.format_stack()",
        "warnings.formatwarning('text', Warning, __file__, 1)",
        "open(__file__).read()",
    ],
)
def test_a_source_whose_lines_may_act_counts_as_a_whole(record, line):
    helper = f"import linecache, traceback, warnings\n{PASS}"
    helper += f"def act(): {line}\n"
    source = f"{HEAD}{PASS}import warnings, helper\nwarnings.warn('text')\nhelper.act()\n{BUILD}"

    program = record(source, files={"helper.py": helper.replace("__file__", '"it.py"')})

    assert list_paths(program, "code") < {"it.py", "helper.py"}


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

    assert {"data", "data/a"} <= list_paths(program, "file ", "folder ")
    assert {"data/more", "other/a"} <= {*program.paths}
    assert "data/more/b" not in program.paths


def test_ranks_record_what_they_use_and_neither_what_watches_them_nor_what_torchrun_sets(
    record, tmp_path
):
    """Else no file could come to the repository without the ranks being another program."""
    source = f"{HEAD}import torch.distributed\n{PASS}{BUILD}"
    files = {"a/b/notes.txt": "", "data/c/used": "1", "first.txt": ""}
    used = "def step():\n    torch.from_file('data/c/used', size=1, dtype=torch.uint8)\n"

    program = record(source.replace(PASS, used), launch="torchrun", world_size=2, files=files)

    assert program.obstacles == ()
    assert list_paths(program, "file", "code") == {"it.py", "data/c/used"}
    assert not list_paths(program, "folder ")
    machine = LocalLauncher(tmp_path).describe("cpu", threads=1, devices=1)
    assert isinstance(machine, MachineDescription)
    known = msgspec.structs.replace(program, conditions="0" * 16)
    assert proof.find_other_condition(known, "0" * 16, machine.variables) == ""
