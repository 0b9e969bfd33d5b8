"""What a node has left: however long a stranger's sentence is, the journal can be read again."""

from ci_perf.fleet import node, reading
from ci_perf.fleet.journal import Journal
from ci_perf.fleet.reading import Unusable, Wanted, WrongNode
from ci_perf.model.fleet import Attempt, Ending, Expectation, Receipt
from ci_perf.model.node_check import NodeRefusal
from ci_perf.system import files
from tests.work_plans import TOOL, a_unit, a_work_plan


def test_a_long_last_line_of_a_node_fits_into_the_journal(tmp_path):
    receipt = Receipt(
        unit="u", nonce="n", node="x", exit_code=2, duration_s=1.0, output="!" * 10_000
    )
    files.write(tmp_path / node.RECEIPT, receipt)
    attempt = Attempt(unit="u", number=1, nonce="n", job="j")
    wanted = Wanted(plan=a_work_plan(a_unit("a", id="u")), expect=Expectation())

    outcome = reading.read(tmp_path, attempt, wanted)

    assert isinstance(outcome, Unusable)
    assert outcome.reason.startswith("its command ended with exit code 2 and left no run: !!!")
    with Journal(tmp_path) as journal:
        journal.append([Ending(unit="u", kind="failed", reason=outcome.reason)])
        assert journal.read().endings["u"].reason == outcome.reason


def test_a_node_that_refuses_its_unit_is_told_from_one_that_left_a_run(tmp_path):
    receipt = Receipt(unit="u", nonce="n", node="x", exit_code=3, duration_s=1.0, output="")
    files.write(tmp_path / node.RECEIPT, receipt)
    files.write(tmp_path / node.RUN, NodeRefusal(tool=TOOL, unit="u", reason="!" * 9_000))
    attempt = Attempt(unit="u", number=1, nonce="n", job="j")
    wanted = Wanted(plan=a_work_plan(a_unit("a", id="u")), expect=Expectation())

    outcome = reading.read(tmp_path, attempt, wanted)

    assert isinstance(outcome, WrongNode)
    assert outcome.reason.startswith("the node is not of its class: !!!")
    assert len(outcome.reason) <= 4_000
