"""The rule for the end of thermalisation."""

import numpy as np
import pytest
from numpy.random import PCG64, Generator

import hmc_ensembles as he


def rule(series, batch):
    """MSER by its definition."""
    means = [np.mean(series[n : n + batch]) for n in range(0, len(series) - batch + 1, batch)]
    left = [np.array(means[cut:]) for cut in range(len(means) // 2 + 1)]
    return batch * int(np.argmin([np.sum((x - x.mean()) ** 2) / len(x) ** 2 for x in left]))


@pytest.mark.filterwarnings("ignore::hmc_ensembles.EnsembleWarning")
@pytest.mark.parametrize("batch", [1, 5])
def test_it_is_the_rule(batch):
    random = Generator(PCG64(3))
    for scale in (0, 1, 5, 20):
        n = np.arange(303)
        series = 0.5 + scale * np.exp(-n / 20) + random.standard_normal(303)
        assert he.thermalisation(series, batch) == rule(series, batch)


def test_a_drift_at_the_start_is_cut():
    n = np.arange(1000)
    series = 0.6 - np.exp(-n / 20) + 0.01 * Generator(PCG64(1)).standard_normal(1000)
    assert 60 <= he.thermalisation(series) <= 200
    assert he.thermalisation(np.ones(100)) == 0


def test_a_drift_without_end_gives_a_warning():
    with pytest.warns(he.EnsembleWarning, match="too short"):
        assert he.thermalisation(np.linspace(0, 1, 200)) == 100


def test_what_cannot_be_judged_is_refused():
    with pytest.raises(ValueError, match="too few"):
        he.thermalisation(np.ones(19))
    with pytest.raises(ValueError, match="finite"):
        he.thermalisation([np.nan] * 100)
