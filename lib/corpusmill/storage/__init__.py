"""Runs committed whole, checkpoints and model folders, on local paths and URIs."""

from corpusmill.storage.checkpoints import Checkpoints
from corpusmill.storage.model_folder import SavedModel, load_model, restore_model, save_model
from corpusmill.storage.places import Place, fingerprint
from corpusmill.storage.runs import Run, model_input, resolve, run_fingerprint

__all__ = [
    "Checkpoints",
    "Place",
    "Run",
    "SavedModel",
    "fingerprint",
    "load_model",
    "model_input",
    "resolve",
    "restore_model",
    "run_fingerprint",
    "save_model",
]
