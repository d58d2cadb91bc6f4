from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from robotrials.stats.multiple import compact_letters, holm


def test_the_published_values_of_holm_are_met() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == [0.03, 0.06, 0.06, 0.02]


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_keeps_the_order_and_never_lowers_a_value(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(p <= q <= 1.0 for p, q in zip(p_values, adjusted, strict=True))
    ranked = sorted(zip(p_values, adjusted, strict=True))
    assert [q for _, q in ranked] == sorted(adjusted)


def test_the_published_letters_are_met() -> None:
    assert compact_letters(4, {(0, 2), (0, 3), (1, 3)}) == ["a", "ab", "bc", "c"]
    assert compact_letters(4, set()) == ["a", "a", "a", "a"]
    assert compact_letters(3, {(0, 1), (0, 2), (1, 2)}) == ["a", "b", "c"]


@given(
    st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.sampled_from([*combinations(range(9), 2)]))))
)
def test_two_share_a_letter_exactly_when_they_do_not_differ(case: tuple[int, set[tuple[int, int]]]) -> None:
    n, pairs = case
    different = {pair for pair in pairs if pair[1] < n}
    letters = [set(word) for word in compact_letters(n, different)]
    assert all(letters)
    for one, other in combinations(range(n), 2):
        assert bool(letters[one] & letters[other]) == ((one, other) not in different)
