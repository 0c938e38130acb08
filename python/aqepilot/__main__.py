"""`python -m aqepilot` is the command `aqepilot`."""

from aqepilot.cli import main

if __name__ == "__main__":
    main(prog_name="aqepilot")
