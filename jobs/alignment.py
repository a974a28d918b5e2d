"""Dirichlet-Bernoulli Alignment: train, predict, evaluate."""

import sys

from corpusmill.alignment.pipeline import JOB
from corpusmill.runner import run_job

if __name__ == "__main__":
    sys.exit(run_job(JOB, sys.argv[1:]))
