"""Single experts: trained where one can succeed, and never above the ceiling where theory sets one."""

from derivations.chen.parameters import Parameters
from derivations.chen.singles import train


def test_without_feature_noise_a_single_expert_learns_everything():
    # gamma = 0 removes what Theorem 4.1 uses: feature and label agree in every example.
    easy = Parameters(P=3, d=8, J=8, activation="cubic", gamma=(0.0,))
    assert train(easy, 500, 150).test > 0.98


def test_with_feature_noise_it_stays_below_seven_eighths():
    hard = Parameters(P=3, d=8, J=16, activation="tanh")
    found = train(hard, 2000, 150)
    # Three standard errors of an accuracy on 2000 examples are 0.022.
    assert 0.6 < found.test < 0.875 + 0.022
