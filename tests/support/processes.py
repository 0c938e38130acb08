"""What every process of Spark is started with; this module needs no pyspark."""

from __future__ import annotations

import random
import socket
from collections.abc import Mapping
from pathlib import Path


def words(conf: Mapping[str, str]) -> list[str]:
    """Returns the settings as ``--conf`` words.

    >>> words({"spark.aqepilot.mode": "off"})
    ['--conf', 'spark.aqepilot.mode=off']
    """
    return [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]


def free_port() -> int:
    """Returns a port that nothing listens at and that Linux gives to nobody who asks for any."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.randrange(10000, first)
        with socket.socket() as any_socket:
            try:
                any_socket.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
