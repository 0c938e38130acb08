"""A recorded decision is read back whole."""

import base64
import json
import struct
import zlib

import pytest

from aqepilot.decision import COLUMNS, Decision, unpack


def packed(values):
    data = base64.b64encode(zlib.compress(struct.pack(f"<{len(values)}q", *values))).decode()
    return {"packed": "int64-le+zlib+base64", "n": len(values), "data": data}


def decision(**fields):
    return Decision(**(dict.fromkeys(Decision._fields) | fields))


def test_packed_arrays_are_lists_again_wherever_they_are():
    values = [0, 1, -1, 2**62, *range(1000)]
    facts = {
        "side": {"bytes_by_partition_id": packed(values), "short": [1, 2]},
        "all": [packed([])],
    }
    unpacked = decision(facts_json=json.dumps(facts)).facts
    assert unpacked == {"side": {"bytes_by_partition_id": values, "short": [1, 2]}, "all": [[]]}


def test_facts_that_were_not_recorded_are_empty():
    assert decision(facts_json=None).facts == {}


def test_an_unknown_packing_is_refused_rather_than_misread():
    with pytest.raises(ValueError, match="too old"):
        unpack({"packed": "int64-le+zstd", "n": 1, "data": ""})


def test_columns_are_the_fields():
    assert len(COLUMNS) == len(Decision._fields) == 24
    assert "facts" in COLUMNS
