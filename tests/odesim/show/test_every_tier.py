"""Every tier, of whatever variables, and SGD of every system has its picture, with the title that all have."""

import matplotlib
import pytest

import odesim
from odesim.show import plot

matplotlib.use("Agg")

RUNS = {
    "liao cascade": ("liao", {"tier": "cascade", "until": 5}),
    "liao linear": ("liao", {"tier": "linear", "m": 3, "m_star": 3, "d": 100, "until": 5}),
    "liao of many": ("liao", {"m": 10, "m_star": 9, "d": 100, "until": 2}),
    "liao without teachers": ("liao", {"m": 4, "m_star": 0, "d": 100, "until": 2}),
    "chen group2": ("chen", {"tier": "group2", "J": 1, "init": "specialised", "until": 0.2}),
    "chen explore": ("chen", {"tier": "explore", "until": 0.05}),
    "kawata R3": ("kawata", {"tier": "R3", "d": 10**4, "neurons": 5, "until": 1e4}),
    "pmoe L3": ("pmoe", {"preset": "tiny-separate", "tier": "L3", "until": 10}),
    "pruning homogeneous": ("pruning", {"tier": "homogeneous", "until": 2000}),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_tier_has_its_picture(name):
    system, options = RUNS[name]
    made = plot.figures(odesim.integrate(system, save_points=5, **options))
    assert made and all(figure.get_suptitle().startswith((f"{system}: ODE", f"{system}, ")) for figure in made.values())


def test_the_closed_form_of_pmoe_is_the_run_of_its_tier():
    from derivations.pmoe.theory import references

    run = odesim.integrate("pmoe", preset="tiny-separate", tier="L3", until=50, save_points=21).dataset()
    (curve,) = references(run)
    assert curve.x[-1] == 50 and curve.y[-1] == pytest.approx(float(run["v1"][-1]), rel=1e-6)


def test_pruning_of_liao_shows_who_is_kept():
    runs = odesim.integrate(
        "liao", m=6, m_star=2, d=10**4, init="orthogonal", stage="train,prune", until={"train": 120}, save_points=5
    )
    figure = plot.figures(runs[1])["pruning"]
    kept = len(runs[1]["kept"])
    assert figure.axes[1].get_yticklabels()[0].get_text() == f"{kept} kept"
    assert "one step" in figure.get_suptitle()
