"""The statistics of compare, against SciPy, enumeration, published tables and simulated
experiments."""

from __future__ import annotations

import itertools
import math
import random
from functools import partial

import pytest
from commprof_report.compare import judge as rank_tests
from commprof_report.compare.judge import Paired, Shift, Unpaired, shift_of

CASES = 1_000
EXPERIMENTS = 2_000


def paired_shift(differences: list[float], level: float) -> Shift:
    return shift_of(Paired(differences), level)


def unpaired_shift(first: list[float], second: list[float], level: float) -> Shift:
    return shift_of(Unpaired(first, second), level)


def values(chance: random.Random, size: int, shift: float = 0.0) -> list[float]:
    return [chance.gauss(shift, 1) for _ in range(size)]


@pytest.mark.slow
def test_p_values_agree_with_scipy_in_1000_random_cases():
    stats = pytest.importorskip("scipy.stats")
    chance = random.Random(16)
    for _ in range(CASES // 2):
        differences = values(chance, chance.randint(2, 25), chance.choice((0, 0.5, 1)))
        expected = stats.wilcoxon(differences, method="exact").pvalue
        assert paired_shift(differences, 0.95).p == pytest.approx(expected, rel=1e-9)
        first = values(chance, chance.randint(2, 15))
        second = values(chance, chance.randint(2, 15), chance.choice((0, 1, 2)))
        expected = stats.mannwhitneyu(second, first, method="exact").pvalue
        assert unpaired_shift(first, second, 0.95).p == pytest.approx(expected, rel=1e-9)


def test_one_sided_tests_of_sameness_agree_with_scipy():
    stats = pytest.importorskip("scipy.stats")
    chance = random.Random(17)
    for _ in range(100):
        margin, differences = chance.uniform(0.1, 2), values(chance, chance.randint(3, 20), 0.2)
        first, second = (values(chance, chance.randint(3, 12), shift) for shift in (0, 0.2))
        for own, test, (sample, *other) in (
            (Paired(differences), stats.wilcoxon, [differences]),
            (Unpaired(first, second), stats.mannwhitneyu, [second, first]),
        ):
            sides = []
            for side, by in (("less", -margin), ("greater", margin)):
                how = {"alternative": side, "method": "exact"}
                sides.append(test([value + by for value in sample], *other, **how).pvalue)
            found = rank_tests.sameness(own, margin)
            assert found == pytest.approx(max(sides), rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_the_signed_rank_test_with_ties_is_the_enumeration_of_all_signs(seed):
    chance = random.Random(seed)
    differences = [chance.randint(-4, 6) for _ in range(8)]
    kept = [value for value in differences if value]
    rank = {
        size: sum(abs(v) < size for v in kept) + (sum(abs(v) == size for v in kept) + 1) / 2
        for size in map(abs, kept)
    }
    sums = [
        sum(rank[abs(v)] for v, sign in zip(kept, signs) if sign)
        for signs in itertools.product((0, 1), repeat=len(kept))
    ]
    own = sum(rank[abs(v)] for v in kept if v > 0)
    tails = (
        sum(each <= own for each in sums) / len(sums),
        sum(each >= own for each in sums) / len(sums),
    )
    assert paired_shift(differences, 0.95).p == pytest.approx(min(1, 2 * min(tails)))


@pytest.mark.parametrize("seed", range(30))
def test_an_interval_holds_the_shifts_that_the_test_does_not_reject(seed):
    """Just inside each bound the shifted sample is not rejected, just outside it is."""
    chance = random.Random(seed)
    differences, first, second = values(chance, 10, 1), values(chance, 7), values(chance, 9, 1)
    for test, sample in ((Paired, differences), (partial(Unpaired, first), second)):
        found = shift_of(test(sample), 0.95)
        for bound, inwards in ((found.low, 1e-9), (found.high, -1e-9)):
            inside, outside = (
                shift_of(test([value - bound - by for value in sample]), 0.95).p
                for by in (inwards, -inwards)
            )
            assert outside <= 0.05 < inside


def test_too_few_runs_have_no_interval():
    """Five pairs have p >= 2/32, six 2/64; three and four runs p >= 2/35, four and four 2/70."""
    assert paired_shift([1.0] * 5, 0.95)[1:3] == (-math.inf, math.inf)
    assert paired_shift([1.0, 1.1, 1.2, 1.3, 1.4, 1.5], 0.95).is_found
    assert not unpaired_shift([0.0, 0.1, 0.2], [5.0, 5.1, 5.2, 5.3], 0.95).is_found
    assert unpaired_shift([0.0, 0.1, 0.2, 0.3], [5.0, 5.1, 5.2, 5.3], 0.95).is_found


@pytest.mark.parametrize("pairs", (6, 10, 16))
def test_a_difference_is_found_in_one_of_twenty_experiments_without_one(pairs):
    chance = random.Random(pairs)
    found = [paired_shift(values(chance, pairs), 0.95).is_found for _ in range(EXPERIMENTS)]
    assert 0.015 <= sum(found) / EXPERIMENTS <= 0.06
