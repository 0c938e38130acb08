"""What lies in dist/: complete, of one version, and equal to the byte when it is built again."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from email.message import Message
from email.parser import Parser
from pathlib import Path

from aqepilot import catalog
from aqepilot.__about__ import __version__

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
WHEEL = DIST / f"aqepilot-{__version__}-py3-none-any.whl"
SDIST = DIST / f"aqepilot-{__version__}.tar.gz"


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def metadata() -> Message:
    with zipfile.ZipFile(WHEEL) as archive:
        text = archive.read(f"aqepilot-{__version__}.dist-info/METADATA").decode()
    return Parser().parsestr(text)


def build(what: str, source: Path, to: Path) -> Path:
    """Builds as pip does; nothing but Python and the build's own packages is on the path."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", what, "-d", str(to)],
        cwd=source,
        env={"PATH": os.defpath if what == "sdist" else str(to)},
        check=True,
        capture_output=True,
    )
    (made,) = (path for path in to.iterdir() if path.suffix in (".whl", ".gz"))
    return made


def every_jar_is_in_the_wheel() -> None:
    with zipfile.ZipFile(WHEEL) as archive:
        jars_in_wheel = {Path(name).name for name in archive.namelist() if name.endswith(".jar")}
    wanted = {
        f"aqepilot-spark-{row.minor}_{row.scala}-{__version__}.jar"
        for row in catalog.spark_minors()
    }
    assert jars_in_wheel == wanted, jars_in_wheel ^ wanted


def the_jars_have_this_version_and_the_licence() -> None:
    license_text = (ROOT / "LICENSE").read_bytes()
    with zipfile.ZipFile(WHEEL) as archive:
        for name in archive.namelist():
            if name.endswith(".jar"):
                with archive.open(name) as content, zipfile.ZipFile(content) as jar:
                    build_of = jar.read("aqepilot-build.properties").decode().splitlines()
                    assert f"version={__version__}" in build_of, (name, build_of)
                    assert jar.read("META-INF/LICENSE") == license_text, name
                    when = {info.date_time[0] for info in jar.infolist()}
                    assert when == {2010}, f"{name} has the time of its build: {when}"


def no_link_of_the_readme_is_relative() -> None:
    text = metadata().get_payload()
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 5, links
    relative = [link for link in links if not link.startswith(("https://", "#"))]
    assert not relative, relative
    paths = re.findall(rf"/v{re.escape(__version__)}/([^)#]+)", text)
    missing = [path for path in paths if not (ROOT / path).exists()]
    assert paths
    assert not missing, missing


def each_python_that_is_promised_is_named() -> None:
    fields = metadata()
    minors = [c.rpartition(" ")[2] for c in fields.get_all("Classifier") if " :: 3." in c]
    assert minors == [f"3.{minor}" for minor in range(10, 15)], minors
    assert fields["Requires-Python"] == f">={minors[0]}"
    named = {url.partition(",")[0] for url in fields.get_all("Project-URL")}
    assert named >= {"Homepage", "Documentation", "Source", "Issues", "Changelog"}, named


def the_tag_is_this_version() -> str | None:
    """Where the commit has a tag of a version, or CI says that it runs for one."""
    tags = subprocess.run(
        ["git", "tag", "--points-at", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout.split()
    named = os.environ.get("GITHUB_REF_NAME", "")
    tags = [tag for tag in {*tags, named} if re.fullmatch(r"v\d.*", tag)]
    if not tags:
        return "no tag of a version here"
    assert tags == [f"v{__version__}"], f"tagged {tags}, but __about__.py says {__version__}"
    return None


def changelog_and_citation_have_this_version() -> None:
    version = subprocess.run(
        [sys.executable, "tools/release_notes.py", __version__],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert version.returncode == 0, version.stderr
    cited = re.findall(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited == [__version__], cited


def the_sdist_builds_the_same_wheel() -> None:
    with tempfile.TemporaryDirectory() as folder, tarfile.open(SDIST) as archive:
        archive.extractall(folder, filter="data")
        made = build("wheel", Path(folder, f"aqepilot-{__version__}"), Path(folder, "made"))
        assert sha256(made) == sha256(WHEEL), "the sdist's wheel is another"


def a_second_build_is_equal() -> None:
    for what, first in (("wheel", WHEEL), ("sdist", SDIST)):
        with tempfile.TemporaryDirectory() as folder:
            assert sha256(build(what, ROOT, Path(folder))) == sha256(first), what


def the_sdist_holds_what_the_jars_are_built_of() -> None:
    with tarfile.open(SDIST) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tracked = subprocess.run(
        ["git", "ls-files", "jvm/src", "project", "build.sbt", "Makefile", "tools", "python"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    missing = sorted(path for path in tracked if (ROOT / path).exists() and path not in names)
    assert tracked
    assert not missing, missing


def the_checksums_are_these_files() -> None:
    listed = dict(
        reversed(line.split("  ")) for line in (DIST / "SHA256SUMS").read_text().splitlines()
    )
    boms = {f"sbom/{path.name}" for path in DIST.glob("sbom/*.json")}
    assert set(listed) == {WHEEL.name, SDIST.name, *boms}, listed
    wrong = [name for name, digest in listed.items() if sha256(DIST / name) != digest]
    assert not wrong, wrong


def the_parts_list_is_of_these_bytes() -> None:
    bom = json.loads((DIST / "sbom" / f"{WHEEL.name}.cdx.json").read_text())
    assert bom["metadata"]["component"]["hashes"][0]["content"] == sha256(WHEEL)
    listed = {c["name"]: c["hashes"][0]["content"] for c in bom["components"] if c.get("group")}
    with zipfile.ZipFile(WHEEL) as archive:
        jars = {
            Path(name).name.rpartition("-")[0]: hashlib.sha256(archive.read(name)).hexdigest()
            for name in archive.namelist()
            if name.endswith(".jar")
        }
    assert listed == jars
    named = {c["name"] for c in bom["components"] if "hashes" not in c}
    assert named == {
        re.split(r"[ <>=!;\[]", text)[0] for text in metadata().get_all("Requires-Dist")
    }


CHECKS: dict[str, Callable[[], str | None]] = {
    check.__name__: check
    for check in (
        *(every_jar_is_in_the_wheel, the_jars_have_this_version_and_the_licence),
        *(no_link_of_the_readme_is_relative, each_python_that_is_promised_is_named),
        *(changelog_and_citation_have_this_version,),
        *(the_tag_is_this_version, the_sdist_builds_the_same_wheel, a_second_build_is_equal),
        *(the_sdist_holds_what_the_jars_are_built_of, the_checksums_are_these_files),
        *(the_parts_list_is_of_these_bytes,),
    )
}
