"""Which predictions of an evaluation are explained."""

import numpy as np
import pytest

from corpusmill.fragments.tasks.evaluation import worth_a_look


@pytest.mark.parametrize(
    ("wrong", "most", "chosen"),
    [
        ([0, 1, 0, 1, 0, 1], 4, [1, 3, 0, 2]),
        ([0, 0, 1, 0], 4, [2, 0, 1, 3]),
        ([1, 1, 1, 0], 4, [0, 1, 2, 3]),
        ([0, 0, 0], 2, [0, 1]),
        ([1, 0], 1, [1]),
        ([], 3, []),
    ],
)
def test_wrong_ones_come_first_and_right_ones_are_there(wrong, most, chosen):
    assert worth_a_look(np.array(wrong, bool), most).tolist() == chosen
