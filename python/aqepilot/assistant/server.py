"""The server of an assistant's tools: over its own input and output, or by HTTP on this machine."""

from __future__ import annotations

import secrets
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from aqepilot.__about__ import __version__
from aqepilot.assistant.answers import NOTE
from aqepilot.assistant.tools import RefusedError, Tools
from aqepilot.errors import AqePilotError, Problem

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer  # type: ignore[import-not-found,unused-ignore]

    from aqepilot.assistant.reading import Reading

LOOPBACK = "127.0.0.1"
INSTRUCTIONS = (
    "aqepilot replaces decisions of Spark's adaptive query execution by policies. Begin with "
    "`overview` and `findings`; `documentation` with the topic `skill` says how to go on. Answers "
    "are bounded: `next_offset` asks for the rest. Nothing here raises a mode: a policy that you "
    f"propose is in shadow, and records only. {NOTE}"
)


def require() -> None:
    """Does nothing where this Python has the library.

    Raises:
        AqePilotError: It has not, or an older one.
    """
    try:
        from mcp.server.mcpserver import MCPServer  # noqa: F401
    except ImportError:
        message = "this needs mcp 2 in this Python: pip install 'aqepilot[mcp]', or 'mcp>=2.1'."
        raise AqePilotError(Problem("MCP_MISSING", message)) from None


def made(tools: Tools) -> MCPServer[Any]:
    """Returns a server of these tools.

    Raises:
        AqePilotError: This Python has no library for it.
    """
    require()
    from mcp.server.mcpserver import MCPServer
    from mcp.types import ToolAnnotations  # type: ignore[import-not-found,unused-ignore]

    server: MCPServer[Any] = MCPServer(
        "aqepilot", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING"
    )
    for each, reads_only in ((tools.reads(), True), (tools.acts(), False)):
        for tool in each:
            hints = ToolAnnotations(
                read_only_hint=reads_only,
                destructive_hint=False,
                idempotent_hint=reads_only,
                open_world_hint=False,
            )
            server.add_tool(_refusing(tool), annotations=hints, structured_output=False)
    return server


def _refusing(tool: Callable[..., str]) -> Callable[..., str]:
    """The same, with errors as the library tells them to the assistant."""
    from functools import wraps

    from mcp.server.mcpserver.exceptions import (  # type: ignore[import-not-found,unused-ignore]
        ToolError,
    )

    @wraps(tool)
    def refusing(**arguments: Any) -> str:
        try:
            return tool(**arguments)
        except RefusedError as error:
            raise ToolError(str(error)) from None

    return refusing


def warm(reading: Reading) -> None:
    """Begins to read in the background what is asked for first."""

    def read() -> None:
        # The tool that needs it says what is wrong.
        with suppress(Exception):
            reading.warm()

    if reading.logs:
        threading.Thread(target=read, name="aqepilot-mcp-warm", daemon=True).start()


def serve_stdio(server: MCPServer[Any]) -> None:
    """Serves until the input ends. What else is printed goes to the standard error."""
    server.run("stdio")


def serve_http(server: MCPServer[Any], port: int, key: str | None = None) -> None:
    """Serves by HTTP on this machine's loopback, under an address that cannot be guessed.

    Other users of this machine reach its loopback, too, and so do pages in its browsers: the
    address has a key, and requests of another host or origin are refused.

    Args:
        server: The server.
        port: The port; 0 for any that is free.
        key: A part of the address; null draws one.
    """
    import anyio
    import uvicorn  # type: ignore[import-not-found,unused-ignore]
    from mcp.server.transport_security import (  # type: ignore[import-not-found,unused-ignore]
        TransportSecuritySettings,
    )

    with socket.create_server((LOOPBACK, port)) as listening:
        at = listening.getsockname()[1]
        path = f"/{key or secrets.token_urlsafe(24)}/mcp"
        hosts = [f"{name}:{at}" for name in (LOOPBACK, "localhost")]
        app = server.streamable_http_app(
            streamable_http_path=path,
            transport_security=TransportSecuritySettings(
                allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts]
            ),
        )
        print(f"http://{LOOPBACK}:{at}{path}", file=sys.stderr, flush=True)
        running = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
        anyio.run(lambda: running.serve(sockets=[listening]))
