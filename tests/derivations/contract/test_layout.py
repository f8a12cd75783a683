"""A flat state is packed and unpacked without loss, and every entry knows its place in it."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import derivations
from derivations.contract import Dense, Layout, Upper, UsageError, load

PARTS = st.lists(
    st.one_of(st.lists(st.integers(1, 3), max_size=3).map(tuple), st.integers(1, 4)), min_size=1, max_size=4
)
"""A shape for a dense part, a number for a symmetric matrix."""
_drawn = given(
    PARTS, st.sampled_from(["closed", "open", "rows"]), st.integers(1, 3), st.sampled_from([(), (2,), (1, 3)])
)


def drawn(test):
    """Drawn layouts; on a busy machine the first ones may take long to draw, which says nothing of them."""
    return settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)(_drawn(test))


def made(shapes, form, count, lead):
    """A layout and flat states (*lead, size) of distinct numbers: `count` rows, or so many columns of an open part."""
    parts = [Upper(f"c{k}", s, 0.5 * k) if isinstance(s, int) else Dense(f"c{k}", s) for k, s in enumerate(shapes)]
    size = sum(part.count(0) for part in parts)
    if form == "rows":
        size = max(size, 1) * count
        layout = Layout(tuple(parts) if any(part.count(0) for part in parts) else (Dense("c", ()),), rows=True)
    elif form == "open":
        layout, size = Layout((*parts, Dense("rest", (2, -1)))), size + 2 * (count - 1)
    else:
        layout = Layout(tuple(parts))
    return layout, np.arange(int(np.prod(lead)) * size).reshape(*lead, size) + 0.25


@drawn
def test_packing_undoes_unpacking_and_unpacking_undoes_packing(shapes, form, count, lead):
    layout, y = made(shapes, form, count, lead)
    components = layout.unpack(y)
    assert np.array_equal(layout.pack(components), y)
    for name, values in layout.unpack(layout.pack(components)).items():
        assert np.array_equal(values, components[name])


@drawn
def test_places_tell_where_entries_are_found(shapes, form, count, lead):
    layout, y = made(shapes, form, count, lead)
    components, size = layout.unpack(y), y.shape[-1]
    numbered = layout.unpack(np.arange(size, dtype=float))
    for part in layout.parts:
        places = layout.places(part.name, size)
        moves = places >= 0
        assert np.array_equal(numbered[part.name][moves], places[moves])
        assert np.array_equal(components[part.name][..., moves], y[..., places[moves]])
        if isinstance(part, Upper):
            assert (components[part.name][..., ~moves] == part.diagonal).all()
        else:
            assert moves.all()
    taken = np.concatenate([layout.places(part.name, size).ravel() for part in layout.parts])
    assert sorted(set(taken[taken >= 0])) == list(range(size))


def test_components_that_do_not_fit_are_refused():
    layout = Layout((Dense("a", (2, 3)),))
    with pytest.raises(ValueError, match="component a must end in axes"):
        layout.pack({"a": np.zeros((3, 2))})
    with pytest.raises(ValueError, match="component a must end in axes"):
        layout.pack({"a": np.zeros(6)})
    with pytest.raises(KeyError, match="a"):
        layout.pack({"b": np.zeros((2, 3))})


@pytest.mark.parametrize("name", derivations.names())
def test_every_component_of_a_system_has_its_place(name):
    system = derivations.system(name)
    asked = 0
    for stage in system.stages:
        for tier in stage.tiers if stage.equations else ():
            try:
                found = load(stage.equations)(system.parameters(), tier)
            except UsageError:  # a tier that the default parameters do not have
                continue
            parts = {part.name: part for part in found.layout.parts}
            for component in found.state:
                part = parts[component.name]
                assert len(part.shape) + found.layout.rows == len(component.dims)
                asked += 1
    assert asked
