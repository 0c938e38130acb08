"""What a person may do to a trial."""

from __future__ import annotations

from typing import Literal

Action = Literal["hold", "release", "skip", "pin", "undo"]
