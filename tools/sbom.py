"""Writes what a wheel and each jar in it consist of, as CycloneDX: `make dist`.

The jars carry no library; the wheel carries the jars, and names what pip installs beside it.
"""

from __future__ import annotations

import hashlib
import re
import sys
import zipfile
from collections.abc import Iterable
from email.parser import Parser
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.requirements import Requirement

HOME = "https://github.com/aqepilot/aqepilot"


def of_wheel(wheel: Path) -> dict[str, Bom]:
    """Returns the parts lists of a wheel and its jars by the names of what they are of."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode())
        jars = {Path(n).name: archive.read(n) for n in archive.namelist() if n.endswith(".jar")}
    boms = {jar: _bom(_jar(jar, content), ()) for jar, content in jars.items()}
    own = _component(
        PackageURL("pypi", name=metadata["Name"], version=metadata["Version"]), wheel.read_bytes()
    )
    needed = (Requirement(text) for text in metadata.get_all("Requires-Dist", []))
    parts = [*(_jar(jar, content) for jar, content in jars.items()), *map(_needed, needed)]
    return {wheel.name: _bom(own, parts), **boms}


def _jar(name: str, content: bytes) -> Component:
    artifact, _, version = name.removesuffix(".jar").rpartition("-")
    return _component(PackageURL("maven", "io.aqepilot", artifact, version), content)


def _component(purl: PackageURL, content: bytes) -> Component:
    return Component(
        type=ComponentType.LIBRARY,
        bom_ref=purl.to_string(),
        group=purl.namespace,
        name=purl.name,
        version=purl.version,
        purl=purl,
        licenses=[LicenseFactory().make_from_string("Apache-2.0")],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=hashlib.sha256(content).hexdigest())],
        external_references=[ExternalReference(type=ExternalReferenceType.VCS, url=XsUri(HOME))],
    )


def _needed(requirement: Requirement) -> Component:
    """What pip installs beside the wheel, of any of these versions; extras when asked for."""
    is_extra = "extra ==" in str(requirement.marker)
    purl = PackageURL("pypi", name=requirement.name)
    return Component(
        type=ComponentType.LIBRARY,
        bom_ref=re.sub(r"\s", "", str(requirement)),
        name=requirement.name,
        purl=purl,
        scope=ComponentScope.OPTIONAL if is_extra else ComponentScope.REQUIRED,
        description=f"not in the wheel; pip installs one of {requirement}",
    )


def _bom(component: Component, parts: Iterable[Component]) -> Bom:
    """The same for the same bytes: neither a time nor a random number is in it."""
    content = next(iter(component.hashes)).content
    bom = Bom(components=parts, serial_number=uuid5(NAMESPACE_URL, f"{component.purl}#{content}"))
    bom.metadata.component = component
    bom.metadata.timestamp = None
    bom.register_dependency(component, bom.components)
    return bom


def main(wheel: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.json"):
        old.unlink()
    for name, bom in of_wheel(wheel).items():
        text = JsonV1Dot6(bom).output_as_string(indent=2)
        if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
            sys.exit(f"the parts list of {name} does not fit CycloneDX 1.6: {error}")
        (folder / f"{name}.cdx.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
