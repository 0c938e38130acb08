"""Functions that answer otherwise each time that they are asked."""

import itertools

_counter = itertools.count()


def _next(*answers):
    return answers[next(_counter) % len(answers)]


def join_reorder(facts):
    """Two orders by turns."""
    order = list(range(facts.chain.num_relations))
    return _next(order, order[::-1])


def join_selection(facts):
    """Each strategy by turns."""
    return _next(
        {"strategy": "BROADCAST", "build_side": "LEFT"},
        {"strategy": "SHUFFLE_HASH", "build_side": "RIGHT"},
        "SHUFFLE_MERGE",
        {"strategy": "BROADCAST", "build_side": "RIGHT"},
        {"strategy": "SHUFFLE_HASH", "build_side": "LEFT"},
    )


def dynamic_join_selection(facts):
    """Each word by turns."""
    return _next("BROADCAST", "SHUFFLE_HASH", "SHUFFLE_MERGE", "NO_BROADCAST_HASH", None)


def shuffle_partitions(facts):
    """Three numbers by turns."""
    return _next(2, 11, 5)


def skew_join(facts):
    """Splits of one side, of the other and of both by turns."""
    left = [2 for _ in facts.left.bytes_by_partition_id or ()] or None
    right = [3 for _ in facts.right.bytes_by_partition_id or ()] or None
    return _next(
        {"left_splits": left, "right_splits": right, "force": True},
        {"left_splits": left, "force": True},
        {"right_splits": right},
    )


def partition_coalescing(facts):
    """Few and many partitions, local reads and none, by turns."""
    return _next({"keep": True}, {"local_read": True, "min_partitions": 1}, {"target_bytes": 1024})


def cost_evaluation(facts):
    """Accepts and refuses by turns."""
    return _next(1.0, 9.0, 3.0)


def write_distribution(facts):
    """Spread evenly, by the partition columns, and not at all, by turns."""
    return _next({"rebalance": True, "columns": []}, True, None)
