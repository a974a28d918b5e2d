"""Trees against LightGBM itself, to the last bit: trained ones, drawn ones, and damaged ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import pytest

from corpusmill.boosting.model import BoostingModel
from corpusmill.boosting.settings import LearnerSettings
from corpusmill.boosting.trees import BITS, BLOCK, predict_trees, read_trees, scores_of
from corpusmill.errors import ModelError
from corpusmill.types import Floats

WIDTH = 5
TINY = float(np.float32(1e-35))
ODD = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-36, -TINY, np.nextafter(TINY, 1.0), 1.0, -1.0, 1e300]
TYPES = [missing << 2 | left << 1 for missing in range(3) for left in range(2)]


def lightgbm_scores(text: str, rows: Floats) -> Floats:
    booster = lgb.Booster(model_str=text)
    return np.asarray(booster.predict(rows, raw_score=True, num_threads=1))


def odd_rows(count: int, rng: np.random.Generator, more: Floats | None = None) -> Floats:
    """Rows of numbers that are likely to be mistaken, thresholds and their neighbours too."""
    values = np.array(ODD)
    if more is not None:
        beside = [np.nextafter(more, np.inf), np.nextafter(more, -np.inf)]
        values = np.concatenate([values, more, *beside])
    drawn = rng.choice(values, (count, WIDTH))
    return np.where(rng.random(drawn.shape) < 0.3, rng.normal(size=drawn.shape), drawn)


def draw_tree(leaves: int, rng: np.random.Generator) -> dict[str, Any]:
    """Split leaves of chance, as LightGBM numbers them: the left one keeps its number."""
    lefts, rights = [], []
    above: dict[int, tuple[list[int], int]] = {}
    for node in range(leaves - 1):
        leaf = int(rng.integers(node + 1))
        if leaf in above:
            side, at = above[leaf]
            side[at] = node
        lefts.append(~leaf)
        rights.append(~(node + 1))
        above[leaf], above[node + 1] = (lefts, node), (rights, node)
    inner = leaves - 1
    thresholds = np.where(
        rng.random(inner) < 0.5, rng.choice(ODD[1:], inner), rng.normal(size=inner)
    )
    return {
        "num_leaves": leaves,
        "num_cat": 0,
        "split_feature": rng.integers(0, WIDTH, inner),
        "threshold": thresholds,
        "decision_type": rng.choice(TYPES, inner),
        "left_child": lefts,
        "right_child": rights,
        "leaf_value": rng.normal(size=leaves),
    }


def text_of(trees: list[dict[str, Any]]) -> str:
    parts = []
    for number, tree in enumerate(trees):
        lines = [f"Tree={number}"]
        for name, value in tree.items():
            numbers = np.atleast_1d(np.asarray(value)).tolist()
            lines.append(f"{name}={' '.join(repr(one) for one in numbers)}")
        parts.append("\n".join([*lines, "is_linear=0", "shrinkage=1", "", "", ""]))
    names = " ".join(f"f{number}" for number in range(WIDTH))
    head = [
        "tree",
        "version=v4",
        "num_class=1",
        "num_tree_per_iteration=1",
        "label_index=0",
        f"max_feature_idx={WIDTH - 1}",
        f"feature_names={names}",
        f"feature_infos={' '.join(['none'] * WIDTH)}",
        f"tree_sizes={' '.join(str(len(part)) for part in parts)}",
    ]
    return "\n".join([*head, "", ""]) + "".join(parts) + "end of trees\n\n"


def drawn_text(seed: int, leaves: list[int]) -> str:
    rng = np.random.default_rng(seed)
    return text_of([draw_tree(count, rng) for count in leaves])


def trained_text(trees: int = 10, **given: Any) -> str:
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(2000, WIDTH)).round(1)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    labels = np.nan_to_num(rows[:, 0] * rows[:, 1]) + (rows[:, 2] > 0.0) + np.isnan(rows[:, 3])
    common = {"objective": "regression", "verbosity": -1, "num_threads": 1, "min_data_in_leaf": 2}
    data = lgb.Dataset(rows, labels, params=common | given)
    return lgb.train(common | given, data, trees).model_to_string()


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"use_missing": False},
        {"zero_as_missing": True},
        {"num_leaves": 2},
        {"num_leaves": BITS},
        {"num_leaves": BITS + 1},
        {"num_leaves": 300, "learning_rate": 0.5},
        {"min_data_in_leaf": 5000},
    ],
    ids=str,
)
def test_trained_trees_give_the_bits_of_lightgbm(given):
    text = trained_text(**given)
    ensemble = read_trees(text)
    rows = odd_rows(1000, np.random.default_rng(1), ensemble.thresholds)
    np.testing.assert_array_equal(predict_trees(ensemble, rows), lightgbm_scores(text, rows))


@pytest.mark.parametrize("seed", range(20))
def test_drawn_trees_give_the_bits_of_lightgbm(seed):
    rng = np.random.default_rng(seed)
    sizes = [1, 2, BITS - 1, BITS, BITS + 1, *rng.integers(1, 90, 15).tolist()]
    text = drawn_text(seed, rng.permutation(sizes).tolist())
    ensemble = read_trees(text)
    rows = odd_rows(400, rng, ensemble.thresholds)
    np.testing.assert_array_equal(predict_trees(ensemble, rows), lightgbm_scores(text, rows))


def test_trees_of_one_leaf_and_no_trees_at_all():
    rows = odd_rows(3, np.random.default_rng(0))
    text = drawn_text(0, [1, 1])
    np.testing.assert_array_equal(scores_of(text, rows), lightgbm_scores(text, rows))
    assert scores_of(drawn_text(0, []), rows).tolist() == [0.0] * 3


@pytest.mark.parametrize("rows", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1])
def test_any_number_of_rows_in_any_layout(rows):
    text = drawn_text(3, [20, 70])
    values = odd_rows(rows, np.random.default_rng(rows))
    expected = scores_of(text, values)
    if rows:
        np.testing.assert_array_equal(expected, lightgbm_scores(text, values))
    wide = np.hstack([values, values])
    for same in (np.asfortranarray(values), wide[:, :WIDTH], values.copy()):
        same.setflags(write=False)
        np.testing.assert_array_equal(scores_of(text, same), expected)


def test_rows_of_another_width_are_refused():
    with pytest.raises(ValueError, match=r"rows of 5 features expected, got \(3, 4\)"):
        scores_of(drawn_text(0, [3]), np.zeros((3, 4)))


def edited(name: str, *values: Any) -> Callable[[str], str]:
    """Put other values on the line of the last tree."""

    def edit(text: str) -> str:
        before, line, rest = text.rpartition(f"\n{name}=")
        end = rest.index("\n")
        return before + line + " ".join(map(str, values)) + rest[end:]

    return edit


def headed(name: str, value: str) -> Callable[[str], str]:
    def edit(text: str) -> str:
        before, line, rest = text.partition(f"\n{name}=")
        return before + line + value + rest[rest.index("\n") :]

    return edit


# The last tree: 0 splits into leaf 0 and node 1, which splits into leaves 1 and 2.
DAMAGED = {
    "empty": (lambda text: "", "not all of them"),
    "cut": (lambda text: text[: len(text) // 2], "not all of them"),
    "something else": (lambda text: "forest" + text[4:], "no trees in LightGBM's text format"),
    "a cycle": (edited("right_child", 0, -3), "tree 2 has a child"),
    "itself": (edited("right_child", 1, 1), "tree 2 has a child"),
    "a child twice": (edited("right_child", 1, -2), "tree 2 has a child"),
    "no such node": (edited("right_child", 2, -3), "tree 2 has a child"),
    "no such leaf": (edited("right_child", 1, -4), "tree 2 has a child"),
    "a huge child": (edited("left_child", -1, 10**30), "left_child holds something else"),
    "a lost child": (edited("left_child", -1), "tree 2 has 1 of 2 values of left_child"),
    "one more leaf": (edited("leaf_value", 1, 2, 3, 4), "tree 2 has 4 of 3 values of leaf_value"),
    "no such feature": (edited("split_feature", 0, WIDTH), "tree 2 splits by a feature"),
    "a negative feature": (edited("split_feature", 0, -1), "tree 2 splits by a feature"),
    "NaN": (edited("threshold", "nan", 1.0), "threshold holds a number that is not finite"),
    "infinite": (edited("leaf_value", "inf", 1.0, 2.0), "leaf_value holds a number that is not"),
    "words": (edited("threshold", "x", 1.0), "threshold holds something else than numbers"),
    "categories": (edited("num_cat", 1), "tree 2 has no leaf, categorical"),
    "a category": (edited("decision_type", 2, 1), "tree 2 has a split that is none by numbers"),
    "no such type": (edited("decision_type", 2, 12), "tree 2 has a split that is none by"),
    "linear leaves": (edited("is_linear", 1), "tree 2 has no leaf, .* or linear leaves"),
    "no leaf": (edited("num_leaves", 0), "tree 2 has no leaf"),
    "leaves without a number": (edited("num_leaves", "many"), "num_leaves is 'many'"),
    "more leaves": (edited("num_leaves", 999_999_999), "tree 2 has 2 of 999999998 values"),
    "a tree less": (headed("tree_sizes", "1 1"), "tree_sizes and the trees do not fit"),
    "classes": (headed("num_tree_per_iteration", "3"), "trees must be of one class"),
    "no width": (headed("max_feature_idx", "-1"), "max_feature_idx is '-1'"),
    "an average": (headed("label_index", "0\naverage_output"), "and added up"),
    "another width": (headed("max_feature_idx", "9"), "the trees are not of 5 features"),
}


@pytest.mark.parametrize(("damage", "reason"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_trees_are_refused_at_load(tmp_path, damage, reason):
    """The checksums are those of the damaged trees: whoever forges one can forge the other."""
    save_trees(tmp_path, damage(sound_text()))
    with pytest.raises(ModelError, match=rf"^MODEL01: .* is no boosting model: .*{reason}"):
        BoostingModel.load(str(tmp_path))


def test_sound_trees_are_not_refused(tmp_path):
    save_trees(tmp_path, sound_text())
    rows = odd_rows(50, np.random.default_rng(2))
    found = BoostingModel.load(str(tmp_path)).scores(rows)
    np.testing.assert_array_equal(found, lightgbm_scores(sound_text(), rows))


def sound_text() -> str:
    rng = np.random.default_rng(5)
    last = draw_tree(3, rng) | {"left_child": [-1, -2], "right_child": [1, -3]}
    return text_of([draw_tree(4, rng), draw_tree(1, rng), last])


def save_trees(folder: Path, text: str) -> None:
    names = tuple(f"f{number}" for number in range(WIDTH))
    BoostingModel(LearnerSettings(), text, names).save(str(folder))
