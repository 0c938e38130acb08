#!/bin/sh
# Writes the settings of all policies for whoever submits jobs. Run it after each change of a policy,
# and commit what it writes. Another folder than conf/: conf.sh FOLDER
set -eu
cd "$(dirname "$0")"
to=${1:-conf}
mkdir -p "$to"
settings() {
  aqepilot conf policies/*.toml @words@ --format "$1"
}
settings defaults > "$to/spark-defaults.conf"
settings json > "$to/spark.json"
