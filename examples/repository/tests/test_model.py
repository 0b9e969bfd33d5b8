from model import normalize, train_step


def test_normalized_numbers_have_a_mean_of_zero():
    columns = zip(*normalize([(1, 10), (2, 20), (6, 30)]))

    assert [round(sum(column), 9) for column in columns] == [0, 0]


def test_a_step_leads_towards_the_label():
    assert train_step([0.0, 0.0], [(1, 0)], [1])[0] > 0
