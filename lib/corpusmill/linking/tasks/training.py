"""Train: knowledge into arrays, boosted stages, the Nil bias on development texts."""

from __future__ import annotations

import time
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np

from corpusmill import storage
from corpusmill.boosting.fitting import Progress
from corpusmill.boosting.model import BoostingModel
from corpusmill.boosting.plots import importance_figure, importance_table, loss_figure
from corpusmill.corpora.schemas import QUARANTINE
from corpusmill.linking import plots
from corpusmill.linking.coherence import FEATURE_NAMES as COHERENCE_NAMES
from corpusmill.linking.features import FEATURE_NAMES
from corpusmill.linking.fitting import BIASES, TEXT_COLUMNS, Fitted, curve, fit_links
from corpusmill.linking.model import LinkingModel
from corpusmill.linking.tasks.knowledge import placed, read_knowledge
from corpusmill.linking.tasks.settings import LinkingSettings
from corpusmill.linking.tasks.texts import read_texts

if TYPE_CHECKING:
    from corpusmill.runner import Context

STAGES = ("first", "second")


def train(context: Context) -> None:
    """Train on the texts and keep the model."""
    conf: LinkingSettings = context.settings
    texts = read_texts(context, conf.input.training())
    bad, develop = texts.bad, None
    if conf.input.develop:
        read = read_texts(context, conf.input.development())
        bad, develop = bad.unionByName(read.bad), read.rows
    knowledge, bad_knowledge = read_knowledge(context, texts.rows)
    context.run.write_parquet("quarantine", bad.unionByName(bad_knowledge), schema=QUARANTINE)
    folders = [context.run.checkpoints(1, name) for name in STAGES[: conf.model.stages]]
    # Without the first stage's trees the second's are of no use.
    found = (_resumed(folder) for folder in folders)
    starts = [start for start in takewhile(lambda start: start is not None, found) if start]
    losses = {number: start.losses.tolist() for number, start in enumerate(starts)}
    begin = time.perf_counter()
    with context.progress.stage("train") as stage:

        def on_block(number: int, done: Progress) -> None:
            told = f"stage {number + 1}, loss {done.losses[-1]:.4f}"
            stage.update(len(done.losses), conf.model.trees, told)
            known = len(losses.get(number, []))
            context.tracker.log_curve(f"{STAGES[number]}_loss", done.losses[known:], known)
            trees = np.frombuffer(done.trees.encode(), np.uint8)
            folders[number].save(len(done.losses), {"losses": done.losses, "trees": trees}, {})
            losses[number] = done.losses.tolist()

        columns = (*TEXT_COLUMNS, "text_entities")
        fitted = fit_links(
            placed(context, texts.rows.select(*columns), knowledge),
            knowledge,
            conf.model,
            conf.seed,
            None if develop is None else placed(context, develop.select(*columns), knowledge),
            conf.checkpoint_trees,
            on_block,
            starts,
        )
    fitted.model.save(context.run.path("model"))
    _track(context, fitted, losses, time.perf_counter() - begin)


def _resumed(checkpoints: storage.Checkpoints) -> Progress | None:
    found = checkpoints.latest()
    if found is None:
        return None
    _, arrays, _ = found
    return Progress(arrays["trees"].tobytes().decode(), arrays["losses"])


def _track(
    context: Context, fitted: Fitted, losses: dict[int, list[float]], seconds: float
) -> None:
    model, tracker = fitted.model, context.tracker
    metrics: dict[str, float] = {"train.seconds": seconds}
    names = (FEATURE_NAMES, (*FEATURE_NAMES, *COHERENCE_NAMES))
    for number, trees in enumerate(model.trees):
        stage, bias = STAGES[number], model.biases[number]
        title = f"{stage} stage"
        scorer = BoostingModel(model.settings, trees, names[number])
        importance = importance_table(scorer)
        metrics[f"train.{stage}.nil_bias"] = model.biases[number]
        tracker.log_figure(
            importance_figure(importance, f"{title}: features by gain"),
            f"plots/{stage}_importance.png",
        )
        tracker.log_table(importance, f"tables/{stage}_importance.json")
        if number in losses:
            metrics[f"train.{stage}.last_loss"] = losses[number][-1]
            figure = loss_figure(losses[number], model.settings.loss, f"{title}: training")
            tracker.log_figure(figure, f"plots/{stage}_loss.png")
        if number < len(fitted.curves):
            curves = curve(fitted.curves[number])
            metrics[f"train.{stage}.develop_f1"] = float(curves[2].max())
            figure = plots.bias_figure(
                BIASES, curves, model.biases[number], f"{title}: development texts"
            )
            context.progress.say(
                f"{title}: F1 {100.0 * curves[2].max():.2f} on development texts, b = {bias:g}"
            )
            tracker.log_figure(figure, f"plots/{stage}_bias.png")
    context.run.write_metrics(metrics)
    tracker.log_model(context.run.path("model"), LinkingModel.KIND, plots.example_texts())
