"""Looks at the files around the sources, each with what knows its kind: `make lint-files`.

Workflows, forms and the like of the hosting site, scripts, the Dockerfile, and the job for the
Spark operator, which has to be one in the operator's own words.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from kubeflow_spark_api.models import SparkV1beta2SparkApplication

ROOT = Path(__file__).resolve().parents[1]
SCHEMAS = {
    "vendor.github-workflows": ".github/workflows/*.yml",
    "vendor.github-actions": ".github/actions/*/action.yml",
    "vendor.dependabot": ".github/dependabot.yml",
    "vendor.github-issue-forms": ".github/ISSUE_TEMPLATE/[!c]*.yml",
    "vendor.github-issue-config": ".github/ISSUE_TEMPLATE/config.yml",
    "vendor.citation-file-format": "CITATION.cff",
}
SCRIPTS = (".ci/run", "docs/**/*.sh", "python/**/*.sh")
DOCKERFILES = ("docs/**/Dockerfile",)
APPLICATIONS = "docs/**/spark-application.yaml"


def files(*patterns: str) -> list[str]:
    """Returns what is there; a pattern without a file is a fault of this page."""
    paths = [str(p.relative_to(ROOT)) for pattern in patterns for p in sorted(ROOT.glob(pattern))]
    if not paths:
        sys.exit(f"no file is named {' or '.join(patterns)}")
    return paths


def commands() -> Iterable[list[str]]:
    yield ["actionlint"]
    for schema, pattern in SCHEMAS.items():
        kind = ["--default-filetype", "yaml"] if pattern.endswith(".cff") else []
        yield ["check-jsonschema", "--builtin-schema", schema, *kind, *files(pattern)]
    yield ["shellcheck", *files(*SCRIPTS)]
    yield ["hadolint", *files(*DOCKERFILES)]


def unknown(there: Any, known: Any, path: str = "") -> list[str]:
    """Returns the places of what the operator's types do not have."""
    if isinstance(there, dict):
        lost = [f"{path}.{key}" for key in there if key not in (known or {})]
        within = (unknown(v, known[k], f"{path}.{k}") for k, v in there.items() if k in known)
        return lost + [place for places in within for place in places]
    if isinstance(there, list):
        pairs = enumerate(zip(there, known, strict=True))
        return [p for i, (a, b) in pairs for p in unknown(a, b, f"{path}[{i}]")]
    return [] if there == known else [f"{path}: {there!r}"]


def application(path: str) -> list[str]:
    """Returns what is wrong with a job for the operator."""
    there = yaml.safe_load((ROOT / path).read_text("utf-8"))
    try:
        known = SparkV1beta2SparkApplication.from_dict(there).to_dict()
    except ValueError as error:
        return [f"{path}: {error}"]
    return [f"{path}: the operator has no {place}" for place in unknown(there, known)]


def main() -> int:
    failed = [words for words in commands() if subprocess.run(words, cwd=ROOT).returncode]
    problems = [problem for path in files(APPLICATIONS) for problem in application(path)]
    for problem in problems:
        print(problem, file=sys.stderr)
    for words in failed:
        print(f"failed: {' '.join(words)}", file=sys.stderr)
    return int(bool(failed or problems))


if __name__ == "__main__":
    sys.exit(main())
