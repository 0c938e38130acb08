"""Runs all parts of `make test` or `test-all`, then prints how long each took. Fails if one did."""

import subprocess
import sys
import time

# Without these, the parts after them have nothing to test.
ESSENTIAL = ("env", "jars", "wheel", "install")


def run_part(part: str) -> tuple[bool, float]:
    print(f"\n==== make {part}", flush=True)
    started = time.monotonic()
    command = ["make", "--no-print-directory", *part.split()]
    passed = subprocess.run(command, check=False).returncode == 0
    return passed, time.monotonic() - started


def main(parts: list[str]) -> int:
    outcomes: list[tuple[str, str, float]] = []
    stopped = False
    for part in parts:
        if stopped:
            outcomes.append((part, "not run", 0.0))
            continue
        passed, seconds = run_part(part)
        outcomes.append((part, "passed" if passed else "FAILED", seconds))
        stopped = not passed and part in ESSENTIAL

    width = max(len(part) for part in parts)
    print("\nPart".ljust(width + 3), "Outcome  Seconds")
    for part, outcome, seconds in outcomes:
        print(f"{part:<{width}}   {outcome:<7} {seconds:8.0f}")
    print(f"{'total':<{width}}   {'':<7} {sum(seconds for *_, seconds in outcomes):8.0f}")

    bad = [part for part, outcome, _ in outcomes if outcome != "passed"]
    if bad:
        print(f"failed: {', '.join(bad)}. Run one alone with: make {bad[0]}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
