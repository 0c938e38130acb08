"""The joins of a plan in an event log, each with the generated code that it is a part of.

A plan is there as JSON, in which a node's name comes before its children and its metrics after
them: so the pieces between names and metrics open and close nodes, as brackets do.
"""

from __future__ import annotations

# Quotes within a value are escaped, so these are found nowhere else. No text here has a backslash,
# which `spark.sql.parser.escapedStringLiterals` would read otherwise.
_PIECES = """split(sparkPlanInfo, '(?="nodeName":")|(?="metrics":)')"""
_NAME = """regexp_extract(piece, '^"nodeName":"([^"]*)', 1)"""
_TEXT = """split_part(split_part(piece, '"simpleString":"', 2), '","children":', 1)"""
_JOIN = "^(?:[A-Za-z0-9_]+Join|CartesianProduct)"
_WITHOUT_KEYS = "BroadcastNestedLoopJoin|CartesianProduct"
_TYPES = "Inner|Cross|LeftOuter|RightOuter|FullOuter|LeftSemi|LeftAnti|ExistenceJoin"
_MOST = 300

# Each open node's generated code is on the stack; that of an adapter's children is another.
_WALK = f"""
  aggregate({_PIECES},
    named_struct('stack', cast(array() AS array<string>),
      'found', cast(array() AS array<struct<name: string, codegen: string, text: string>>)),
    (s, piece) -> CASE
      WHEN startswith(piece, '"metrics":[') THEN named_struct(
        'stack', slice(s.stack, 1, greatest(size(s.stack) - 1, 0)), 'found', s.found)
      WHEN startswith(piece, '"nodeName":"') THEN named_struct(
        'stack', concat(s.stack, array(CASE
          WHEN startswith({_NAME}, 'WholeStageCodegen') THEN {_NAME}
          WHEN {_NAME} = 'InputAdapter' THEN ''
          ELSE coalesce(try_element_at(s.stack, -1), '') END)),
        'found', IF({_NAME} RLIKE '{_JOIN}', concat(s.found, array(named_struct(
          'name', {_NAME}, 'codegen', coalesce(try_element_at(s.stack, -1), ''),
          'text', {_TEXT}))), s.found))
      ELSE s END).found
"""
JOIN_NODES = f"""
  transform({_WALK}, j -> named_struct(
    'operator', regexp_extract(j.name, '{_JOIN}', 0),
    'scope', coalesce(nullif(j.codegen, ''), j.name),
    'type', nullif(regexp_extract(j.text, '(?:^|[^A-Za-z])({_TYPES})(?:[^A-Za-z]|$)', 1), ''),
    'is_null_aware', j.name = 'BroadcastNestedLoopJoin' AND j.text RLIKE 'LeftAnti, .*isnull',
    'condition', IF(j.name RLIKE '{_WITHOUT_KEYS}',
      left(nullif(regexp_extract(j.text, '(?:(?:{_TYPES}),|^CartesianProduct) (.*)$', 1), ''),
        {_MOST}), NULL)))
"""
