#!/usr/bin/env bash
# A job on Kubernetes by spark-submit, with an image made by ../image/Dockerfile for driver and executors.
#   spark-submit.sh https://cluster:6443 registry.example/spark-aqepilot:4.0 sales.toml local:///opt/jobs/job.py
set -euo pipefail
server=$1 image=$2 policy=$3 job=$4
# The extension's jar is on the driver's class path alone: executors need none, and look for none.
aqepilot conf "$policy" --spark "${SPARK_VERSION:-4.0}" --format defaults --jar-uri local:///opt/aqepilot/aqepilot.jar |
  grep -v '^spark\.jars ' > spark-aqepilot.conf
exec spark-submit \
  --master "k8s://$server" \
  --deploy-mode cluster \
  --properties-file spark-aqepilot.conf \
  --conf spark.driver.extraClassPath=/opt/aqepilot/aqepilot.jar \
  --conf "spark.kubernetes.container.image=$image" \
  --conf "spark.kubernetes.namespace=${NAMESPACE:-default}" \
  --conf "spark.kubernetes.authenticate.driver.serviceAccountName=${SERVICE_ACCOUNT:-spark}" \
  --conf "spark.kubernetes.driverEnv.AIRFLOW_CTX_DAG_ID=${AIRFLOW_CTX_DAG_ID:-}" \
  --conf "spark.kubernetes.driverEnv.AIRFLOW_CTX_TASK_ID=${AIRFLOW_CTX_TASK_ID:-}" \
  --conf "spark.kubernetes.driverEnv.AIRFLOW_CTX_DAG_RUN_ID=${AIRFLOW_CTX_DAG_RUN_ID:-}" \
  "$job"
