"""Answers for single decisions of a query, as a policy that recognises these on other runs."""

from aqepilot.pins.file import policy_text
from aqepilot.pins.identity import Identity, identity_of
from aqepilot.pins.pin import Pin, conflicts, texts

__all__ = ["Identity", "Pin", "conflicts", "identity_of", "policy_text", "texts"]
