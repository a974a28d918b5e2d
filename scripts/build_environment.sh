#!/bin/sh
# Builds dist/environment.tar.gz, the Python environment that executors unpack, from base.txt.
#
#   sh scripts/build_environment.sh VENV
#
# pyspark is left out: a cluster brings its own, and Spark puts it on the workers' path.
set -eu
. "$(dirname "$0")/common.sh"

venv=$1
built=build/environment

mkdir -p build dist
grep -v '^pyspark==' requirements/base.txt >build/executor.txt
sh scripts/venv.sh "$built" requirements/build.txt build/executor.txt
say "dist/environment.tar.gz: packing (about a minute)"
"$venv/bin/venv-pack" --quiet --force --prefix "$built" --output dist/environment.part.tar.gz \
    --compress-level 1 --exclude '*/__pycache__/*' --exclude '*/tests/*' --exclude '*/mlflow/server/js/*'
chmod 644 dist/environment.part.tar.gz
mv dist/environment.part.tar.gz dist/environment.tar.gz
