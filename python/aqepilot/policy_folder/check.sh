#!/bin/sh
# For CI. The policies are good, conf/ is what they give, and, where EVENT_LOGS names event logs, what
# they would have decided on last week's queries is shown. Needs the pyspark that the jobs run on.
set -eu
cd "$(dirname "$0")"
aqepilot check policies/*.toml
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
sh conf.sh "$new" 2> "$new/advice" || { cat "$new/advice" >&2; exit 1; }
for file in spark-defaults.conf spark.json; do
  diff "conf/$file" "$new/$file" || { echo "conf/$file is not of these policies: run conf.sh" >&2; exit 1; }
done
if [ -n "${EVENT_LOGS:-}" ]; then
  for policy in policies/*.toml; do
    set -- "$@" --policy "$policy"
  done
  aqepilot replay --log "$EVENT_LOGS" "$@"
fi
