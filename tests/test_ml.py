"""Params made from settings: one after the other, and together."""

import pytest

from corpusmill.errors import UsageError
from corpusmill.fragments.estimator import FragmentClassifier

pytestmark = pytest.mark.spark


def test_params_that_need_each_other_are_set_in_any_order(spark):
    whole = FragmentClassifier(feedbackRounds=1, merge="cascade")
    assert whole.settings().feedback_rounds == 1
    alone = FragmentClassifier(feedbackRounds=1)
    assert alone.copy({alone.getParam("merge"): "cascade"}).settings().merge == "cascade"


def test_params_that_do_not_go_together_are_one_line(spark):
    with pytest.raises(
        UsageError, match=r"CONF11.*feedback_rounds needs merge = cascade"
    ) as caught:
        FragmentClassifier(feedbackRounds=1).settings()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [0, 1 << 70, "2", 1.5])
def test_a_param_is_checked_as_its_field_is(spark, value):
    with pytest.raises(UsageError, match="CONF04: splits = "):
        FragmentClassifier(splits=value)
