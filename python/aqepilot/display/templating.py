"""Templates of HTML, which escape all that is put into them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from aqepilot import texts
from aqepilot.errors import AqePilotError, Problem

if TYPE_CHECKING:
    from jinja2 import Environment  # type: ignore[import-not-found,unused-ignore]

# Of bars by category, on the light and the dark grounds of notebooks: a contrast of 3 or more on
# both, as WCAG asks.
MARKS = ("#3d85c6", "#c2701c", "#3f9863", "#a06cc0", "#d0536f", "#7d8896", "#8f7f1e")


@cache
def environment(*packages: str) -> Environment:
    """Returns jinja2 with the templates of this package and of others.

    Args:
        *packages: Their names; each has a folder `templates`.

    Raises:
        AqePilotError: There is no jinja2.
    """
    try:
        import jinja2
    except ImportError:
        message = "HTML needs jinja2 in this Python: pip install 'aqepilot[report]', or jinja2."
        raise AqePilotError(Problem("JINJA2_MISSING", message)) from None
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [jinja2.PackageLoader(name) for name in (*packages, "aqepilot.display")]
        ),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    made.filters |= {
        "size": texts.size,
        "duration": texts.duration,
        "number": texts.number,
        "share": texts.share,
        "money": texts.money,
        "visible": texts.visible,
    }
    made.globals |= {"plural": texts.plural, "marks": MARKS}
    return made
