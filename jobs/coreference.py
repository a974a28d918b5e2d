"""Coreference resolution: train, predict, evaluate, and select feature templates."""

import sys

from corpusmill.coreference.pipeline import JOB
from corpusmill.runner import run_job

if __name__ == "__main__":
    sys.exit(run_job(JOB, sys.argv[1:]))
