from ci_perf.report import profiles, tables
from tests.runs import a_measured, a_run


def a_training(optimizer, *values):
    return a_measured(f"mlp.optimizer={optimizer}", 1e-3, losses=values)


SGD, ADAM = a_training("sgd", 2.5, 2.25, 2.0), a_training("adam", 2.5, 1.5)


def cells(*runs):
    """The cells of the table, row by row."""
    lines = tables.markdown(profiles.losses(runs)).splitlines()
    return [line.strip("| ").split(" | ") for line in lines if line.startswith("|")]


def test_optimizers_stand_side_by_side_with_one_row_per_step():
    assert cells(("", a_run(SGD, ADAM))) == [
        ["step", "optimizer=sgd", "optimizer=adam"],
        [":--", "--:", "--:"],
        ["1", "2.50000", "2.50000"],
        ["2", "2.25000", "1.50000"],
        ["3", "2.00000", "\N{EN DASH}"],
    ]


def test_the_runs_of_one_workload_are_neighbours():
    other = a_run(a_training("sgd", 2.5), a_training("adam", 2.5))
    headings, *_ = cells(("base", a_run(SGD, ADAM)), ("head", other))

    assert headings[1:] == [
        "optimizer=sgd base",
        "optimizer=sgd head",
        "optimizer=adam base",
        "optimizer=adam head",
    ]


def test_each_workload_file_has_a_table_and_one_without_losses_is_named():
    run = a_run(SGD, a_measured("vit", 1e-3, losses=[7.0]), a_measured("matmul", 1e-3))
    text = tables.markdown(profiles.losses([("", run)]))

    assert "`mlp`\n\n| step | optimizer=sgd |" in text
    assert "`vit`\n\n| step | vit |" in text
    assert text.endswith("Without a loss: `matmul`\n")


def test_runs_of_one_name_keep_a_column_each():
    headings, _, first, *_ = cells(("a", a_run(ADAM)), ("a", a_run(a_training("adam", 3.5))))

    assert headings == ["step", "optimizer=adam a", "optimizer=adam a"]
    assert first == ["1", "2.50000", "3.50000"]
