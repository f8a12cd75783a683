"""Correlation functions S_ab(rho) = E[f^(a)(z1) g^(b)(z2)], and their tables for gates."""

from hermite.correlation_functions import Correlations
from hermite.correlation_table import CorrelationTable
from hermite.errors import DomainError, NotReached
from hermite.functions import NAMES

__all__ = ["MAXIMUM_ORDER", "CorrelationTable", "Correlations", "NotReached", "for_gate"]

# beyond this order tables stop paying; a logistic gate of temperature 4 needs about 1070 terms at 1e-13
MAXIMUM_ORDER = 1200
GATES = ("logistic", "probit", "erf", "tanh", "silu", "softplus")


def for_gate(name: str, temperature: float, pairs, tolerance: float = 1e-13) -> CorrelationTable:
    """Return the table of a gate, growing the expansion until every pair meets the tolerance.

    Orders tried: 65, then each 1.5 times the order before, up to MAXIMUM_ORDER = 1200.

    Arguments: name, one of 'logistic', 'probit', 'erf', 'tanh', 'silu', 'softplus'; temperature (the scale of the last
    four) > 0; pairs and tolerance as in `Correlations.table`. Raises: DomainError, DegreeError, NotReached with the
    bound reached. Source: `Correlations.table`.

    >>> for_gate("probit", 1.0, [(0, 0)]).coefficients.shape[0]
    1
    """
    if name not in GATES:
        raise DomainError(f"name: expected one of {', '.join(GATES)}, got {name!r}; use Correlations(...).table(pairs)")
    pairs = tuple(pairs)
    order = 65
    while True:
        try:
            return Correlations(NAMES[name](order, temperature)).table(pairs, tolerance)
        except NotReached as refusal:
            if order >= MAXIMUM_ORDER:
                raise NotReached(
                    f"{name} at temperature {temperature}, order {order} (the most tried): {refusal}"
                ) from None
        order = min(order * 3 // 2, MAXIMUM_ORDER)
