"""``make yarn``: jobs under ``spark-submit --master yarn``, on a YARN of one node that it starts.

The YARN is Hadoop's MiniYARNCluster, of the Hadoop that the running pyspark has the client of.
"""

from __future__ import annotations

import sys
import time
import traceback
from pathlib import Path

import click
import pyspark

from yarn import cluster
from yarn.checks import CHECKS


@click.command(help=__doc__)
@click.option("--jars", required=True, help="The jars of MiniYARNCluster, by blanks.")
@click.option("--wrong-jar", required=True, type=Path, help="Our jar for another Spark.")
@click.option("--only", multiple=True, type=click.Choice(list(CHECKS)), help="Only these checks.")
@click.option("--out", default="target/yarn", type=Path, help="Where the cluster works.")
def main(jars: str, wrong_jar: Path, only: tuple[str, ...], out: Path) -> None:
    failed = []
    folder = out.absolute() / pyspark.__version__
    with cluster.running(folder, jars.split(), wrong_jar.absolute()) as yarn:
        print(f"Spark {pyspark.__version__}, YARN in {folder}", flush=True)
        for name in only or CHECKS:
            began = time.monotonic()
            try:
                CHECKS[name](yarn)
            except Exception:
                failed.append(name)
                traceback.print_exc()
            outcome = "FAILED" if name in failed else "passed"
            print(f"{name}: {outcome}, {time.monotonic() - began:.0f} s", flush=True)
    print(f"{len(only or CHECKS) - len(failed)} passed, {len(failed)} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
