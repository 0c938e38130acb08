"""The right jar is found for any vendor's Spark, and a missing one is told clearly."""

import pytest

from aqepilot import JarError, catalog
from aqepilot.submit import jars


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for minor, scala in (("3.5", "2.12"), ("3.5", "2.13"), ("4.0", "2.13"), ("4.3", "2.13")):
        (tmp_path / f"aqepilot-spark-{minor}_{scala}-{jars.__version__}.jar").touch()
    (tmp_path / "aqepilot-spark-4.3_2.13-0.0.9.jar").touch()
    (tmp_path / "other.jar").touch()
    monkeypatch.setattr(jars, "installed_spark", lambda: None)
    return tmp_path


@pytest.mark.parametrize(
    ("version", "row"),
    [
        ("3.5.9", "3.5_2.12"),
        ("3.5.6-amzn-1", "3.5_2.12"),
        ("3.5.3.0-fabric", "3.5_2.12"),
        ("3.5.1.5.3.20240918-1", "3.5_2.12"),
        ("3.5", "3.5_2.12"),
        ("4.0.0-dataproc", "4.0_2.13"),
        ("4.3.1-SNAPSHOT", "4.3_2.13"),
        ("4.3.0-preview2", "4.3_2.13"),
    ],
)
def test_patch_and_vendor_do_not_matter(folder, version, row):
    name = f"aqepilot-spark-{row}-{jars.__version__}.jar"
    assert jars.find(version, folder=folder).name == name


def test_scala_can_be_said(folder):
    assert "3.5_2.13" in jars.find("3.5.9", "2.13", folder).name


def test_the_installed_sparks_scala_counts_for_its_own_minor_only(folder, monkeypatch):
    monkeypatch.setattr(jars, "installed_spark", lambda: jars.Spark("3.5.8", "2.13"))
    assert "3.5_2.13" in jars.find(None, folder=folder).name
    assert "3.5_2.13" in jars.find("3.5.1", folder=folder).name
    assert "4.0_2.13" in jars.find("4.0", folder=folder).name


@pytest.mark.parametrize("version", ["3.4.1", "3.50.0", "4.30", "5.0.0"])
def test_an_unknown_minor_lists_what_there_is(folder, version):
    with pytest.raises(JarError, match=f"no jar for Spark {jars.minor_of(version)}") as caught:
        jars.find(version, folder=folder)
    assert "4.0 on Scala 2.13" in str(caught.value)


def test_no_jars_at_all_says_how_to_get_them(tmp_path):
    with pytest.raises(JarError, match="no jars at all"):
        jars.find("4.3", folder=tmp_path)


def test_no_spark_installed_asks_for_the_version(folder):
    with pytest.raises(JarError, match=r"--spark 3\.5"):
        jars.find(folder=folder)


@pytest.mark.parametrize("version", ["", "4", "latest", "four.three"])
def test_what_is_no_version_is_refused(version):
    with pytest.raises(JarError, match="no Spark version"):
        jars.minor_of(version)


def test_spark_home_goes_before_the_installed_pyspark(tmp_path, monkeypatch):
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.12-3.5.6-amzn-1.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert jars.installed_spark() == ("3.5.6-amzn-1", "2.12", tmp_path)


def test_the_running_pyspark_is_found(monkeypatch):
    import pyspark

    monkeypatch.delenv("SPARK_HOME", raising=False)
    installed = jars.installed_spark()
    assert installed is not None
    assert installed.version == pyspark.__version__
    minors = {(row.minor, row.scala) for row in catalog.spark_minors()}
    assert (jars.minor_of(installed.version), installed.scala) in minors
