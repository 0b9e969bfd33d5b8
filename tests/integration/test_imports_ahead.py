"""Launches of several workloads that import installed libraries at once, for real."""

import msgspec

from ci_perf.launch.local import LocalLauncher
from tests.launches import BUILD, HEAD, PASS, failure_of, result_of

RANKS = 2
# Each line of `order` names the workload; ranks write at the same time. A thread of each rank ticks
# for as long as it runs.
NOTE = """
import os, threading, time
IS_RANK, TICKS = "RANK" in os.environ, {order!r} + ".ticks"
def note(what):
    with open({order!r}, "a") as file:
        file.write(what + "\\n")
def tick():
    while True:
        with open(TICKS, "a") as file:
            file.write(".")
        time.sleep(0.01)
def beside():
    before = os.path.getsize(TICKS)
    time.sleep(0.2)
    return "" if IS_RANK or os.path.getsize(TICKS) == before else " beside a rank"
open(TICKS, "a").close()
if IS_RANK:
    threading.Thread(target=tick, daemon=True).start()
"""
FILE = """
import a_library
a_library.note("{name} runs" + a_library.beside())
"""


def in_a_row(tmp_path, task, *, processes=1, **sources):
    """Launch processes of each; those with "ranks" in their names by torchrun."""
    order = tmp_path / "order"
    library = NOTE.format(order=str(order)) + 'note("library")\n'
    tasks = []
    for name, source in sources.items():
        own = task(name, source.format(name=name) + HEAD + PASS + BUILD, timeout_s=60.0)
        folder = tmp_path / name / "site-packages"
        folder.mkdir()
        (folder / "a_library.py").write_text(library)
        (folder / "a_library_that_ends.py").write_text("import os\nos._exit(3)\n")
        ranks = {"launch": "torchrun", "world_size": RANKS}
        more = ranks if "ranks" in name else {}
        workload = msgspec.structs.replace(own.workload, id=name, **more)
        tasks += [
            msgspec.structs.replace(
                own, workload=workload, python_path=("site-packages",), index=index
            )
            for index in range(processes)
        ]
    with LocalLauncher(tmp_path).ready(tasks) as launches:
        outcomes = [launch() for launch in launches]
    return outcomes, order.read_text().splitlines()


def test_libraries_are_imported_at_once_and_files_run_in_their_turn(tmp_path, task):
    outcomes, order = in_a_row(tmp_path, task, one=FILE, ranks=FILE, other=FILE)

    for outcome in outcomes:
        result_of(outcome)
    assert result_of(outcomes[1]).process.ranks.world_size == RANKS
    assert order == ["library"] * 4 + ["one runs", "ranks runs", "ranks runs", "other runs"]


PREPARED = """
import a_library, os, time
prepared = a_library.TICKS + ".prepared"
if not os.path.exists(prepared):
    with open(prepared, "w") as file:
        time.sleep(0.5)
        file.write("whole")
a_library.note(open(prepared).read())
"""


def test_what_a_file_prepares_is_whole_for_the_next_process_of_its_workload(tmp_path, task):
    outcomes, order = in_a_row(tmp_path, task, processes=3, one=PREPARED)

    assert [result_of(outcome).process.index for outcome in outcomes] == [0, 1, 2]
    assert order == ["library"] * 3 + ["whole"] * 3


def test_ranks_that_end_while_they_import_hold_nobody_up(tmp_path, task):
    ending = "import a_library_that_ends\n"

    outcomes, order = in_a_row(tmp_path, task, ranks=ending, one=FILE)

    assert "exit code 3" in failure_of(outcomes[0]).reason
    result_of(outcomes[1])
    assert order == ["library", "one runs"]
