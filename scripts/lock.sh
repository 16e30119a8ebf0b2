#!/bin/sh
# Resolves the files in locks/ anew: `make lock`. Versions stay as they are unless pyproject.toml asks for others;
# with --upgrade the newest that it allows are taken.
#
#   engine.lock, spark.lock, airflow.lock   a machine that runs the engine alone, Spark, Airflow and Spark
#   dev.lock                                this clone: all of that, the demo's data and the tools
#   datacontract.lock                       the linter of contracts, in an environment of its own
#   docs.lock                               what builds the docs' site, and the engine, whose docstrings it reads
set -eu
cd "$(dirname "$0")/.."
own=${TRENDLAKE_STATE:-.trendlake}/tools/uv/bin/uv
uv=$(command -v uv || printf '%s' "$own")
export UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-1}" UV_CUSTOM_COMPILE_COMMAND="make lock"

# Every lock is for all platforms and Python versions from 3.11 on.
compile() { "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes "$@"; }

compile "$@" pyproject.toml --all-extras -o locks/dev.lock
compile pyproject.toml -c locks/dev.lock -o locks/engine.lock
compile pyproject.toml -c locks/dev.lock --extra spark -o locks/spark.lock
compile pyproject.toml -c locks/dev.lock --extra airflow -o locks/airflow.lock
echo datacontract-cli==1.2.8 | compile "$@" - -o locks/datacontract.lock
printf '%s\n' sphinx furo myst-parser myst-nb mmdr | compile "$@" pyproject.toml - -c locks/dev.lock -o locks/docs.lock
