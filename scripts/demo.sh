#!/bin/sh
# Trains and applies the query-log job on the embedded sample; the Makefile sets the environment.
set -eu
conf=conf/alignment/demo.yaml

python jobs/alignment.py train --conf "$conf"
python jobs/alignment.py predict --conf "$conf"
python scripts/show_demo.py runs/demo/predictions
echo
echo "Review the run in a browser at http://127.0.0.1:5000 with:"
echo "  .venv/bin/mlflow ui --backend-store-uri sqlite:///mlflow.db --host 127.0.0.1 --port 5000"
