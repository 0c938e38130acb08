"""The folder that a team keeps its policies in: what `aqepilot init` writes to begin with."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from aqepilot import control, recipes
from aqepilot.errors import AqePilotError, Problem


def write(
    folder: Path,
    names: Sequence[str],
    where: Mapping[str, str],
    control_file: str | None,
    spark: str,
) -> list[Path]:
    """Writes a folder of policies, each a recipe in shadow mode.

    Args:
        folder: The folder; it is made where it is not there.
        names: Recipes.
        where: Options of `aqepilot conf` for where the jar is; a flag has an empty value.
        control_file: Where all applications read the control file; null to make one in the folder.
        spark: The Spark that the jobs run on.

    Returns:
        The files, but those of ``conf/``, which `conf.sh` writes.

    Raises:
        AqePilotError: There is no such recipe, or a file is there already.
    """
    own = folder / "control.json"
    shown = control_file or own.resolve().as_uri()
    options = {**where, "--control": shown}
    words = shlex.join(word for pair in options.items() for word in pair if word)
    texts = {f"policies/{name}.toml": in_shadow(recipes.text(name, spark)) for name in names}
    for name in ("conf.sh", "check.sh", "README.md"):
        template = files("aqepilot.policy_folder").joinpath(name).read_text("utf-8")
        named = template.replace("@control@", control_file or own.name)
        texts[name] = named.replace("@words@", words)
    made = [*(folder / name for name in texts), *(() if control_file else (own,))]
    if there := [str(path) for path in made if path.exists()]:
        message = (
            f"{', '.join(there)}: there already, and nothing was written. Name another folder, or "
            "move what is there away."
        )
        raise AqePilotError(Problem("FILE_EXISTS", message))
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    for name in ("conf.sh", "check.sh"):
        (folder / name).chmod(0o755)
    if not control_file:
        control.lift(shown)
    return made


def in_shadow(text: str) -> str:
    r"""Returns a policy file in shadow mode.

    >>> in_shadow('name = "p"\nskew_join = "null"\n')
    'name = "p"\nmode = "shadow"\nskew_join = "null"\n'
    """
    return re.sub(r"^(name = .*)$", r'\1\nmode = "shadow"', text, count=1, flags=re.MULTILINE)
