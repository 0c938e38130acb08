"""Figures as a person reads them."""

from __future__ import annotations

import re

# They move the cursor, or turn the direction of what follows.
_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_BYTES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(count: float | None) -> str:
    """Returns bytes in the largest unit of which there is one; a dash for null.

    >>> [size(n) for n in (0, 1023, 1536, 5 * 2**40, None)]
    ['0 B', '1,023 B', '1.5 KiB', '5.0 TiB', '–']
    """
    if count is None:
        return "–"
    power = 0
    while count >= 1024 and power < len(_BYTES) - 1:
        count, power = count / 1024, power + 1
    return f"{count:,.0f} B" if power == 0 else f"{count:,.1f} {_BYTES[power]}"


def duration(ms: float | None) -> str:
    """Returns milliseconds in seconds, minutes or hours; a dash for null.

    >>> [duration(n) for n in (0, 12, 1500, 90_000, 5_400_000, None)]
    ['0 ms', '12 ms', '1.5 s', '1.5 min', '1.5 h', '–']
    """
    if ms is None:
        return "–"
    for unit, unit_ms in (("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if ms >= unit_ms:
            return f"{ms / unit_ms:,.1f} {unit}"
    return f"{ms:,.0f} ms"


def share(part: float, whole: float) -> str:
    """Returns a part in per cent.

    >>> [share(1, 3), share(1, 5000), share(0, 0)]
    ['33.3 %', 'under 0.1 %', '0 %']
    """
    per_cent = 100 * part / whole if whole else 0
    if per_cent == 0:
        return "0 %"
    return "under 0.1 %" if per_cent < 0.1 else f"{per_cent:.1f} %"


def number(count: float | None) -> str:
    """Returns a count with its thousands apart; a dash for null.

    >>> number(12345)
    '12,345'
    """
    return "–" if count is None else f"{count:,.0f}"


def money(amount: float, currency: str) -> str:
    """Returns an amount with what it is in; more digits where it is little.

    >>> [money(n, "EUR") for n in (1234.5, 0.0123, 0)]
    ['1,234.50 EUR', '0.0123 EUR', '0.00 EUR']
    """
    return f"{amount:,.2f} {currency}" if amount >= 1 or amount == 0 else f"{amount:.4f} {currency}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """Returns a count with its noun.

    >>> [plural(1, "query", "queries"), plural(2000, "log")]
    ['1 query', '2,000 logs']
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def visible(text: str) -> str:
    r"""Returns a text with its control characters as escapes, which a terminal does not obey.

    >>> print(visible("a\tb\x1b[2J\u202ec"))
    a	b\x1b[2J\u202ec
    """
    return _INVISIBLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
