"""Scala classes for tests, compiled by the Scala compiler that pyspark carries."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import zipfile
from pathlib import Path

import pyspark

import submitting


def jar(folder: Path, source: str) -> Path:
    """Compiles a source against the running pyspark and returns its jar in the folder."""
    (folder / "Source.scala").write_text(source, encoding="utf-8")
    (folder / "classes").mkdir()
    spark = Path(pyspark.__file__).parent / "jars"
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java") or "java"
    words = ["-Xss4m", *shlex.split(submitting.COMPILED_ONCE), "-cp", f"{spark}/*"]
    command = [java, *words, "scala.tools.nsc.Main", "-usejavacp"]
    subprocess.run([*command, "-d", "classes", "Source.scala"], cwd=folder, check=True)
    made = folder / "compiled.jar"
    with zipfile.ZipFile(made, "w") as archive:
        for file in (folder / "classes").rglob("*.class"):
            archive.write(file, file.relative_to(folder / "classes"))
    return made
