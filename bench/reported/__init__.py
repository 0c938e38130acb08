"""Jobs as public reports describe them: `make bench ARGS=reported`.

Each has a trouble that its report names, a finding that `aqepilot suggest` should name it by, and,
where no policy helps, the change that mends it. Steps that wait need no core, so `local[16]` shows
on any machine what sixteen slots gain; what computes runs at `local[2]`.
"""

from bench.reported import groups, joins, shuffles
from bench.reported.job import Job

JOBS: dict[str, Job] = {
    "null_keys": joins.NULL_KEYS,
    "cached_200": shuffles.CACHED_200,
    "coalesce_1": shuffles.COALESCE_1,
    "series": groups.SERIES,
    "one_partition": shuffles.ONE_PARTITION,
    "one_tenant": groups.ONE_TENANT,
    "not_in": joins.NOT_IN,
    "either_key": joins.EITHER_KEY,
    "native_rows": groups.NATIVE_ROWS,
}
