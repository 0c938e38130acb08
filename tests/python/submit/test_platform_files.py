"""The files of Deployment say what Spark and aqepilot know."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pyspark

import places
from aqepilot import Policy
from aqepilot.submit import conf

FOLDER = places.ROOT / "docs/run/deploy"
SCRIPT = (FOLDER / "kubernetes" / "spark-submit.sh").read_text("utf-8")
APPLICATION = (FOLDER / "kubernetes" / "spark-application.yaml").read_text("utf-8")
DOCKERFILE = (FOLDER / "image" / "Dockerfile").read_text("utf-8")


def known_to_spark():
    """The texts in the classes of Spark's part for Kubernetes."""
    (jar,) = Path(pyspark.__file__).with_name("jars").glob("spark-kubernetes_*.jar")
    with zipfile.ZipFile(jar) as archive:
        names = [n for n in archive.namelist() if re.search(r"k8s/Config\$?\.class$", n)]
        return b"".join(archive.read(name) for name in names).decode("latin-1")


def test_spark_has_the_settings_for_kubernetes_that_the_script_gives():
    keys = re.findall(r"spark\.kubernetes\.[\w.]+(?==)", SCRIPT)
    known = known_to_spark()
    prefixes = ("spark.kubernetes.driverEnv.",)
    assert len(keys) == 6
    # Spark joins those of the driver from a prefix and a name.
    named = [k.replace("spark.kubernetes.authenticate.driver.", "") for k in keys]
    assert not [k for k in named if k not in known and not k.startswith(prefixes)]
    assert all(prefix in known for prefix in prefixes)


def test_the_job_for_the_operator_has_settings_as_conf_writes_them():
    block = APPLICATION.partition("  sparkConf:\n")[2].partition("  restartPolicy:")[0]
    there = dict(re.findall(r"^    (spark\.[\w.]+): (.*)$", block, re.MULTILINE))
    text = " ".join(block.partition(">-\n")[2].split())
    policy = Policy(name="sales", mode="shadow", dynamic_join_selection=text)
    wanted = conf.settings([policy], None)
    assert {**there, "spark.aqepilot.policy.sales.dynamic_join_selection": text} == {
        **wanted,
        "spark.driver.extraClassPath": there["spark.driver.extraClassPath"],
    }


def test_image_script_and_job_name_the_same_jar():
    (jar,) = re.findall(r"^COPY .* (/\S+\.jar)$", DOCKERFILE, re.MULTILINE)
    assert f"spark.driver.extraClassPath={jar}" in SCRIPT
    assert f"spark.driver.extraClassPath: {jar}\n" in APPLICATION


def test_the_script_gives_spark_submit_the_policy_and_no_jar_for_executors(tmp_path):
    (tmp_path / "sales.toml").write_text("name = 'sales'\nskew_join = 'null'\n")
    stubs = {
        "aqepilot": f'exec "{sys.executable}" -m aqepilot "$@"',
        "spark-submit": 'printf "%s\\n" "$@" > words; cp spark-aqepilot.conf given.conf',
    }
    for name, text in stubs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    subprocess.run(
        [
            FOLDER / "kubernetes" / "spark-submit.sh",
            "https://k:6443",
            "image",
            "sales.toml",
            "j.py",
        ],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        check=True,
    )
    words = (tmp_path / "words").read_text().splitlines()
    assert words[-1] == "j.py"
    assert words[words.index("--master") + 1] == "k8s://https://k:6443"
    settings = conf.parse_defaults((tmp_path / "given.conf").read_text())
    assert settings["spark.sql.extensions"] == conf.EXTENSION
    assert settings["spark.aqepilot.policy.sales.skew_join"] == "null"
    assert "spark.jars" not in settings
