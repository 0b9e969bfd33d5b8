"""What the steps of a proof launch, and what cannot be launched here."""

from pathlib import Path

import pytest

from ci_perf.gate import proof_plans


def test_the_product_lies_in_a_folder_of_its_own_that_goes_with_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with proof_plans.product() as plan:
        root = Path(plan.root)
        (workload,) = plan.workloads
        assert Path(workload.file).is_relative_to(root)

    assert not root.exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_first_workloads_that_ship_are_of_different_files_and_none_has_ranks(device):
    shipped = proof_plans.shipped(device)
    names = [workload.file for workload in shipped.plan.workloads]
    distinct = len(set(names))

    assert len(set(names[:distinct])) == distinct
    assert all(workload.world_size == 1 for workload in shipped.plan.workloads)
    assert not shipped.plan.canaries


def test_workloads_with_ranks_are_named_with_the_reason():
    left_out = proof_plans.shipped("cpu").left_out

    assert left_out["bert_base_finetune.world_size=2"] == "it has several ranks"


def test_modules_that_are_not_installed_are_seen_also_in_a_neighbour(tmp_path):
    (tmp_path / "w.py").write_text(
        "import json\nimport _helper\ndef build(c):\n    from absent_here.deep import x\n"
    )
    (tmp_path / "_helper.py").write_text("import _helper, absent_there, ci_perf.workload\n")

    missing = proof_plans.missing_modules(tmp_path / "w.py")

    assert missing == {"absent_here", "absent_there"}


def test_rounds_are_those_of_every_workload():
    plan = proof_plans.of_rounds(proof_plans.shipped("cpu").plan, 7)

    assert {workload.protocol.processes for workload in plan.workloads} == {7}
