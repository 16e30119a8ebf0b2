"""Running sums and maxima of amounts of any size, in constant space."""

from __future__ import annotations

import math

from trendlake.pipelines.report.amounts import Amount
from trendlake.pipelines.report.facts import GroupKey


class Tally:
    """Of the amounts added: their sum, the largest, how many, and whose was the largest.

    The sum of counts is exact (an integer of any length) as long as every part is. In addition, it keeps the sum of
    magnitudes with the largest factored out, 10^most * parts with parts in [1, n]: adding 10^log10 either scales
    `parts` down to the new largest or adds 10^(log10 - most) <= 1 to it, so nothing overflows.
    """

    __slots__ = ("count", "exact", "leader", "most", "parts", "peak")

    def __init__(self) -> None:
        self.count = 0
        self.exact: int | None = 0
        self.most = -math.inf
        self.parts = 0.0
        self.peak = Amount(None)
        self.leader: GroupKey = ()

    def add(self, amount: Amount, key: GroupKey) -> None:
        """Count `amount` of the group `key` in."""
        self.count += 1
        rank, peak = amount.order, self.peak.order
        if self.count == 1 or rank > peak or (rank == peak and _place(key) < _place(self.leader)):
            self.peak, self.leader = amount, key
        if self.exact is not None:
            self.exact = self.exact + amount.exact if isinstance(amount.exact, int) else None
        if amount.log10 is None:
            return
        if amount.log10 > self.most:
            self.parts = self.parts * 10.0 ** (self.most - amount.log10) + 1.0
            self.most = amount.log10
        else:
            self.parts += 10.0 ** (amount.log10 - self.most)

    def total(self) -> Amount:
        """The sum, of counts only."""
        if self.exact is not None:
            return Amount.of_count(self.exact)
        return Amount(None, self.most + math.log10(self.parts) if self.parts else None)

    def value(self, *, add: bool) -> Amount:
        """The sum, or the largest."""
        return self.total() if add else self.peak


def _place(key: GroupKey) -> list[tuple[bool, str]]:
    """An order of groups, so that of equal amounts the same one leads in whatever order rows come."""
    return [(text is not None, text or "") for text in key]
