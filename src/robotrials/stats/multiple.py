"""Many policies at once: p-values corrected for their number, and letters that say which ones cannot be told apart."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's (1979) adjusted p-values, in the order given: each may be compared with the level of the whole family.

    >>> holm([0.01, 0.04, 0.03, 0.005])
    [0.03, 0.06, 0.06, 0.02]
    """
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = largest
    return adjusted


def compact_letters(n: int, different: Collection[tuple[int, int]]) -> list[str]:
    """Letters of items 0..n-1, best first: two items share a letter iff the pair is not in ``different``.

    Insert and absorb, Piepho (2004), "An algorithm for a letter-based representation of all-pairwise comparisons",
    Journal of Computational and Graphical Statistics 13(2).

    >>> compact_letters(4, {(0, 2), (0, 3), (1, 3)})
    ['a', 'ab', 'bc', 'c']
    """
    columns = [frozenset(range(n))]
    for one, other in sorted(different):
        split: list[frozenset[int]] = []
        for column in columns:
            split += [column - {one}, column - {other}] if {one, other} <= column else [column]
        # Absorb: a column within another says nothing that the larger one does not.
        unique = list(dict.fromkeys(split))
        columns = [column for column in unique if not any(column < another for another in unique)]
    columns.sort(key=sorted)
    return ["".join(_letter(i) for i, column in enumerate(columns) if item in column) for item in range(n)]


def _letter(number: int) -> str:
    """a ... z, then aa, ab, ...: written as (aa) so that two letters are not read as two columns."""
    if number < 26:
        return chr(ord("a") + number)
    return f"({chr(ord('a') + number // 26 - 1)}{chr(ord('a') + number % 26)})"
