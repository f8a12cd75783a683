"""Names of a declaration in a script, which reserves some names."""

TAKEN = frozenset(
    "np math torch jax jnp functional erf ndtr expit d x f y c p g h k t seed step batch noise decay until saves tick "
    "steps start teacher student sample train loss units teachers share scale mean label probability momentum "
    "momentum_time norm overlap rows fixed vectors axes rng xi key rates velocity gradient update".split()
)
"""Names that a script reserves."""


def word(name: str) -> str:
    """Return the name of a declaration in a script: the same, unless the script reserves it.

    >>> word("beta"), word("x")
    ('beta', 'x_')
    """
    return f"{name}_" if name in TAKEN else name
