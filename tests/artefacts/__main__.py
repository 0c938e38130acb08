"""``make dist``, ``make installs``, ``make packages``: checks of what is built for a release."""

from __future__ import annotations

import sys
import time
import traceback

import click

from artefacts import built, installs, packages

GROUPS = {"built": built.CHECKS, "installs": installs.CHECKS, "packages": packages.CHECKS}


@click.command(help=__doc__)
@click.argument("group", type=click.Choice(list(GROUPS)))
@click.option("--only", multiple=True, help="Only these checks.")
def main(group: str, only: tuple[str, ...]) -> None:
    checks = GROUPS[group]
    if unknown := set(only) - set(checks):
        sys.exit(f"{group} has no check {', '.join(sorted(unknown))}; it has {', '.join(checks)}")
    failed, skipped = list[str](), list[str]()
    for name in only or checks:
        began = time.monotonic()
        try:
            outcome = checks[name]() or "passed"
            skipped += [name] if outcome.startswith("skipped") else []
        except Exception:
            failed.append(name)
            traceback.print_exc()
            outcome = "FAILED"
        print(f"{name}: {outcome}, {time.monotonic() - began:.0f} s", flush=True)
    passed = len(only or checks) - len(failed) - len(skipped)
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
