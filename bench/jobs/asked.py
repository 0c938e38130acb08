"""The function that `python.py` has asked."""


def choose(facts):
    """Reads a size of a side and leaves the join to Spark."""
    sizes = facts.side.bytes_by_partition_id
    return "SHUFFLE_HASH" if sizes and sizes[-1] < 0 else None
