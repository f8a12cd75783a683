"""The integrator of independent blocks, compiled once for all equations, whose block functions it calls by addresses.

Around the functions of each model it would be compiled anew, which takes twice as long as they do.  What it hands on as
the arguments of the equations, `p`, is here (addresses of `started`, `sloped` and `bent`, address of the arguments).
"""

from collections.abc import Callable
from typing import Any

from odesim.flow.blocks import LOOPS

STARTED = "i8, i8 -> f8[:,::1]"
SLOPED = "f8[::1], f8[::1], f8[:,::1], i8, i8"
BENT = "f8[::1], f8[:,::1], f8[:,::1], i8, i8"
INTEGRATE = (
    "f8[:,::1], i8, f8[::1], f8, Tuple((f8, f8, i8, f8)), Tuple((i8[::1], f8[:,::1])), "
    "Tuple((f8[:,:,::1], f8[:,::1], i8[:,::1], i8[::1])), "
    "Tuple((Tuple((f8[:,::1], f8[::1], f8[::1], f8[::1])), UniTuple(i8, 4)))"
)
"""The types that `started`, `sloped`, `bent` and `integrate_blocks` take."""
COMMON = (
    *(f"{__name__}:{name}" for name in ("STARTED", "SLOPED", "BENT", "block_start", "block_slope", "block_jacobian")),
    *(f"odesim.flow.block_loops:{name}" for name in LOOPS),
)
by_address: Callable[..., Any]
lent: Callable[..., int]
borrowed: Callable[..., Any]


def block_start(k, p):
    """What the equations make for block k, once."""
    return by_address(STARTED, p[0], (k, p[3]))


def block_slope(y, out, work, k, p):
    """The derivative of block k."""
    by_address(SLOPED, p[1], (y, out, work, k, p[3]))


def block_jacobian(y, J, work, k, p):
    """The Jacobian of block k."""
    by_address(BENT, p[2], (y, J, work, k, p[3]))


def started(k, at):
    """`block_start` of some equations, their arguments at an address."""
    return block_start(k, borrowed(at))


def sloped(y, out, work, k, at):
    """`block_slope` of some equations, their arguments at an address."""
    block_slope(y, out, work, k, borrowed(at))


def bent(y, J, work, k, at):
    """`block_jacobian` of some equations, their arguments at an address."""
    block_jacobian(y, J, work, k, borrowed(at))


def integrate(start, first, times, until, control, watch, found, table, p, at):
    """`integrate_blocks` at at[0] for equations whose functions lie at at[1:] and whose arguments are p."""
    own = (table, (at[1], at[2], at[3], lent(p)))
    by_address(INTEGRATE, at[0], (start, first, times, until, control, watch, found, own))
