"""The functions that `python.py` has asked: each reads a size of a side and decides as Spark."""


def join_strategy(facts):
    """Asked when one side is there: tasks of the other run meanwhile."""
    sizes = facts.side.bytes_by_partition_id
    return "SHUFFLE_HASH" if sizes and sizes[-1] < 0 else None


def skew(facts):
    """Asked when both sides are there: no task of the query runs."""
    sizes = facts.left.bytes_by_partition_id
    return {"force": True} if sizes and sizes[-1] < 0 else None


# Round trips are told for each function: these are asked while the driver warms up.
warm_join_strategy = join_strategy
warm_skew = skew
