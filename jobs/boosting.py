"""Boosting over factors of structured outputs: train, predict, evaluate."""

import sys

from corpusmill.boosting.pipeline import JOB
from corpusmill.runner import run_job

if __name__ == "__main__":
    sys.exit(run_job(JOB, sys.argv[1:]))
