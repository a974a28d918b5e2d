"""Raw files to Parquet: query logs, Reuters-21578, labelled questions, texts with entities."""

import sys

from corpusmill.corpora.pipeline import JOB
from corpusmill.runner import run_job

if __name__ == "__main__":
    sys.exit(run_job(JOB, sys.argv[1:]))
