"""The tools of an assistant: each answers with a text that is JSON, and says how to get more.

The first sentence of a docstring is what an assistant reads of a tool, so they speak to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec

from pydantic import Field

from aqepilot import control
from aqepilot.__about__ import __version__
from aqepilot.assistant import acting, documents
from aqepilot.assistant.answers import Answers
from aqepilot.assistant.reading import REPORT_PARTS, Reading, at_path, without_arrays
from aqepilot.errors import AqePilotError, Problem, first_line

P = ParamSpec("P")
Offset = Annotated[int, Field(ge=0, description="Rows to leave out: `next_offset` of an answer.")]
Query = Annotated[int, Field(description="The query's number, `execution_id`, as in Spark's UI.")]
App = Annotated[
    str | None, Field(description="Its application; needed where several have such a query.")
]
PolicyFile = Annotated[
    str, Field(description="The text of a policy file, TOML, as `findings` and recipes have it.")
]


class RefusedError(Exception):
    """A tool's error, in words for the one who called it."""


class Tools:
    """The tools over logs, a folder for proposals, and a control file.

    Args:
        reading: The logs.
        answers: Makes answers.
        folder: Where proposals go; null for no proposals.
        control_file: The control file; null for none.
    """

    def __init__(
        self,
        reading: Reading,
        answers: Answers,
        folder: Path | None = None,
        control_file: str | None = None,
    ) -> None:
        self._reading = reading
        self._answers = answers
        self._folder = folder
        self._control = control_file

    def reads(self) -> list[Callable[..., str]]:
        """Returns the tools that change nothing."""
        tools: list[Callable[..., str]] = [
            self.overview,
            self.findings,
            self.queries,
            self.explain,
            self.decisions,
            self.facts,
            self.costs,
            self.report,
            self.experiments,
            self.autopilot,
            self.history,
            self.control_state,
            self.documentation,
            self.check,
            self.replay,
        ]
        return list(map(self._in_words, tools))

    def acts(self) -> list[Callable[..., str]]:
        """Returns the tools that write: only those for which there is a place."""
        tools: list[Callable[..., str]] = []
        if self._folder:
            tools.append(self.propose)
        if self._control:
            tools.append(self.lower)
        return list(map(self._in_words, tools))

    def _in_words(self, tool: Callable[P, str]) -> Callable[P, str]:
        """The same, with errors in words: what went wrong, without secrets, and what to do."""

        @wraps(tool)
        def telling(*args: P.args, **kwargs: P.kwargs) -> str:
            try:
                return tool(*args, **kwargs)
            except AqePilotError as error:
                words = "\n".join(map(str, error.problems))
            except Exception as error:
                words = f"{type(error).__name__}: {first_line(error)}"
            raise RefusedError(self._answers.clean(words)) from None

        return telling

    def overview(self, offset: Offset = 0) -> str:
        """Say what the logs are, which policies ran in which mode, and what this server may do.

        Begin here.
        """
        rows: list[Any] = []
        summary = "The server has no logs."
        if self._reading.logs:
            summary, rows = self._reading.overview()
        may = [f"propose policies into {self._folder}"] if self._folder else []
        may += [f"lower {self._control}"] if self._control else []
        acts = f" Beside reading it may {' and '.join(may)}." if may else " It reads only."
        return self._answers.rows(f"aqepilot {__version__}. {summary}{acts}", rows, offset)

    def findings(self, offset: Offset = 0) -> str:
        """Name what the queries would gain most from: cause, evidence, and a policy or a change.

        Those with most at stake come first. A policy is in shadow mode: it records, and changes
        nothing.
        """
        rows = self._reading.findings()
        summary = f"{len(rows)} findings, those with most of cores' time at stake first."
        if not rows:
            summary = "Nothing in these logs would gain from a policy or a change that is known."
        return self._answers.rows(summary, rows, offset)

    def queries(self, app_id: App = None, offset: Offset = 0) -> str:
        """List the queries with most task time."""
        rows = self._reading.queries(app_id)
        return self._answers.rows(
            f"{len(rows)} queries, those with most task time first.", rows, offset
        )

    def explain(self, query: Query, app_id: App = None, offset: Offset = 0) -> str:
        """Tell of one query what Spark knew, what was decided, and what came of it."""
        text = self._reading.explanation(query, app_id)
        return self._answers.lines(f"Query {query} in sentences.", text, offset)

    def decisions(self, query: Query, app_id: App = None, offset: Offset = 0) -> str:
        """List the decisions of one query: answers, reasons, and what came of each."""
        recorded = self._reading.decisions(query, app_id)
        rows = []
        for one in recorded:
            row = {name: value for name, value in one._asdict().items() if value is not None}
            row.pop("facts_json", None)
            rows.append({**row, "time": str(row.get("time"))})
        more = "`facts` with a decision_id has what the policy saw."
        return self._answers.rows(f"{len(rows)} decisions, oldest first.", rows, offset, more=more)

    def facts(
        self,
        query: Query,
        decision_id: int,
        app_id: App = None,
        path: Annotated[
            str, Field(description="A part, e.g. left or left.bytes_by_partition_id.")
        ] = "",
        offset: Offset = 0,
    ) -> str:
        """Show the facts that a policy saw at one decision, or a part of them."""
        recorded = self._reading.decisions(query, app_id)
        one = next((d for d in recorded if d.decision_id == decision_id), None)
        if one is None:
            ids = f"{recorded[0].decision_id} to {recorded[-1].decision_id}" if recorded else "none"
            message = f"query {query} has no decision {decision_id}; it has {ids}."
            raise AqePilotError(Problem("DECISION_NOT_FOUND", message))
        facts = next((d.facts for d in recorded if d.facts_id == one.facts_id and d.facts_json), {})
        value = at_path(facts, path)
        if isinstance(value, list):
            return self._answers.rows(f"{len(value):,} values of this fact.", value, offset)
        rows = [value]
        if isinstance(value, dict):
            parts = without_arrays(value, path).items()
            rows = [{"fact": name, "value": part} for name, part in parts]
        more = "Give a `path` for a part, and for the values of an array."
        return self._answers.rows(
            f"Facts of decision {decision_id}; null is what Spark does not know.",
            rows,
            offset,
            more=more,
        )

    def costs(
        self,
        slots: Annotated[
            int | None, Field(ge=1, description="Also lay the tasks out on so many cores.")
        ] = None,
        offset: Offset = 0,
    ) -> str:
        """Say where cores' time did no work, by query: waiting, tiny tasks, spills, retries.

        All figures are milliseconds of cores.
        """
        rows = self._reading.costs(slots)
        return self._answers.rows(
            f"{len(rows)} queries, most of what did no work first.", rows, offset
        )

    def report(
        self,
        part: Annotated[
            Literal[
                "points", "guard_rails", "failures", "bad_policies", "skewed_shuffles", "stages"
            ],
            Field(description="Which part of the report."),
        ],
        offset: Offset = 0,
    ) -> str:
        """Show a part of the report, which holds for the logs as a whole."""
        if part not in REPORT_PARTS:
            message = f"the report has no part {part!r}; it has {', '.join(REPORT_PARTS)}."
            raise AqePilotError(Problem("TOPIC_UNKNOWN", message))
        rows = self._reading.report(part)
        return self._answers.rows(f"{len(rows)} rows of the report's part {part}.", rows, offset)

    def experiments(self, offset: Offset = 0) -> str:
        """Say what each experiment shows so far, and what to do."""
        rows = self._reading.experiments()
        return self._answers.rows(f"{len(rows)} experiments, the newest first.", rows, offset)

    def autopilot(self, offset: Offset = 0) -> str:
        """Show what the autopilot tries: each trial's state, share, effect, savings and reason."""
        rows = self._reading.autopilot()
        return self._answers.rows(f"{len(rows)} trials, the newest first.", rows, offset)

    def history(self, offset: Offset = 0) -> str:
        """Say what past runs measured, how old that is, and what of it is not used for now."""
        pack = self._reading.history()
        kinds, held = pack.pop("kinds"), pack.pop("held")
        rows = [
            {"file": pack},
            *({"kind": kind} for kind in kinds),
            *({"held": one} for one in held),
        ]
        return self._answers.rows("The file of history, its kinds, and what is held.", rows, offset)

    def control_state(self, offset: Offset = 0) -> str:
        """Show the control file: which modes are lowered, by whom, why and until when."""
        if self._control is None:
            message = (
                "the server was started without a control file: `aqepilot mcp --control PATH`."
            )
            raise AqePilotError(Problem("CONTROL_UNREACHABLE", message))
        file = control.read(self._control)
        rows = [{"rule": rule.model_dump(mode="json", exclude_none=True)} for rule in file.rules]
        rows += [
            {"write": write.model_dump(mode="json", exclude_none=True)}
            for write in reversed(file.history)
        ]
        summary = f"{len(file.rules)} rules, then the newest writes. A rule only lowers modes."
        return self._answers.rows(summary, rows, offset)

    def documentation(
        self,
        topic: Annotated[str, Field(description="A topic; empty lists them.")] = "",
        offset: Offset = 0,
    ) -> str:
        """Read up a topic: decision points with their facts, reasons, settings, recipes."""
        rows = documents.document(topic)
        return self._answers.rows(f"aqepilot on {topic or 'its topics'}.", rows, offset, note=None)

    def check(self, policy: PolicyFile) -> str:
        """Check a policy: its keys, and its SQL against the facts. Nothing is changed."""
        wrong = acting.problems(self._reading, policy)
        if not wrong:
            return self._answers.rows("The policy is good.", [])
        rows = [{**problem._asdict(), "message": str(problem)} for problem in wrong]
        return self._answers.rows("The policy is wrong.", rows)

    def replay(self, policy: PolicyFile, offset: Offset = 0) -> str:
        """Ask a policy again with the facts of the logs: what would it have answered otherwise?"""
        result = dict(acting.replayed(self._reading, policy))
        changes = [_change(row) for row in result.pop("changes")]
        result.pop("fail_if")
        summary = str(result.pop("summary"))
        rows = [{"whole": result}, *({"change": change} for change in changes)]
        return self._answers.rows(f"{summary} Changes with most task time first.", rows, offset)

    def propose(self, policy: PolicyFile) -> str:
        """Write a policy in shadow mode as a new file, for a person to look at.

        It is checked first. Shadow records what it would decide, and changes no plan. No file that
        is there is replaced.
        """
        assert self._folder is not None
        path = acting.propose(self._reading, policy, self._folder)
        return self._answers.rows(
            f"Written to {path}, in shadow mode. A person submits it, and nothing is in force yet.",
            [],
        )

    def lower(
        self,
        mode: Annotated[
            Literal["off", "shadow"],
            Field(description="off: not asked, plain Spark; shadow: asked and recorded only."),
        ],
        reason: Annotated[str, Field(description="Why, for those who wonder later.")],
        policy: str | None = None,
        point: str | None = None,
        revision: str | None = None,
        job: str | None = None,
        fingerprint: str | None = None,
        spark: str | None = None,
        hours: Annotated[
            float | None, Field(description="End it after so long; null for never.")
        ] = None,
    ) -> str:
        """Lower the mode of policies in all applications that read the control file.

        It holds for what all selectors fit, and for everything without one. Only a person lifts a
        rule again.
        """
        assert self._control is not None
        every: Mapping[str, str | None] = {
            **{"policy": policy, "point": point, "revision": revision},
            **{"job": job, "fingerprint": fingerprint, "spark": spark},
        }
        selectors = {name: value for name, value in every.items() if value is not None}
        rule = acting.lower(self._control, mode, selectors, reason, hours)
        end = f"until {rule.until.isoformat()}" if rule.until else "until a person lifts it"
        summary = f"Rule {rule.id} holds {end}. Applications see it within their refresh time."
        return self._answers.rows(summary, [rule.model_dump(mode="json", exclude_none=True)])


def _change(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}
