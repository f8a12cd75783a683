"""A stage that goes on over decades is saved early too, and at the usual times as ever."""

import numpy as np
import pytest

import odesim
from odesim.request.case import Case
from odesim.request.saved_times import EARLY, saved_times


def test_only_default_times_of_a_stage_over_decades_have_early_ones():
    case = Case.build("kawata", {"neurons": 4})
    times = saved_times(case, 1000.0)
    assert np.isin(np.linspace(0, 1000, 201), times).all()
    early = times[(times >= 0.1) & (times < 5)]
    assert early[0] == pytest.approx(0.1) and max(np.diff(np.log10(early))) < 1.01 / EARLY
    asked = Case.build("kawata", {"neurons": 4}, save_points=201)
    assert saved_times(asked, 1000.0).tolist() == np.linspace(0, 1000, 201).tolist()
    assert saved_times(Case.build("liao"), 90.0).tolist() == np.linspace(0, 90, 201).tolist()
    assert case.digest != asked.digest  # a folder that holds other times is another run


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("kawata", {"neurons": 4, "d": 10**4, "until": 1e5}),
        (
            "pruning",
            {"d": 24, "n": 12, "k": 4, "l": 3, "m": 6, "important": 1, "weak": 1, "missigned": 0, "until": 900},
        ),
    ],
)
def test_states_at_the_usual_times_are_the_same_to_the_last_bit(name, given):
    more, even = odesim.integrate(name, **given), odesim.integrate(name, save_points=201, **given)
    place = np.isin(more.time, even.time)
    assert place.sum() == 201 < len(more.time)
    for component, variable in even.state.items():
        assert np.array_equal(more.state[component].values[place], variable.values), component


def test_sgd_takes_the_same_steps_and_saves_more_of_them():
    given = {"d": 24, "n": 12, "k": 4, "l": 3, "m": 6, "important": 1, "weak": 1, "missigned": 0, "until": 400}
    sgd = {"method": "compressed", "step_size": 0.5, "batch": 4, "seeds": 1}
    more, even = (odesim.simulate("pruning", **sgd, **given, **count) for count in ({}, {"save_points": 201}))
    place = np.isin(more.time, even.time)
    assert len(more.time) > len(even.time) == place.sum()
    assert np.array_equal(more["Delta"][:, place], even["Delta"])


def test_a_declared_model_over_decades_has_early_times_and_a_logarithmic_picture():
    from odesim.show import plot

    run = odesim.integrate("martin_2024", d=100)
    assert len(run.time) > 201 and run.time[1] == pytest.approx(0.1)
    assert {axis.get_xscale() for axis in plot.figures(run)["order_parameters"].axes} == {"log"}
    assert len(odesim.integrate("ren_2025", until=1).time) == 201
