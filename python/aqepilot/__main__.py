"""`python -m aqepilot` is the command `aqepilot`."""

from aqepilot.cli import main

main(prog_name="aqepilot")
