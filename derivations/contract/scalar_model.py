"""The microscopic truth of a stage whose step moves numbers beside the vectors (readouts, biases) or sees norms."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from derivations.contract.model import Model
from derivations.contract.state import Initial, Labelled


def packed(gram: np.ndarray, scalars: np.ndarray) -> np.ndarray:
    """Gram matrices (.., n, n) and scalars (.., s) as one array (.., n n + s), which is what a run saves.

    Of inputs with L eigenspaces the matrices are (.., L, n, n), and the array has L n n + s numbers.

    >>> packed(np.eye(2), np.array([3.0]))
    array([1., 0., 0., 1., 3.])
    """
    return np.concatenate([gram.reshape(*scalars.shape[:-1], -1), scalars], axis=-1)


def unpacked(saved: np.ndarray, n: int, stack: tuple[int, ...] = ()) -> tuple[np.ndarray, np.ndarray]:
    """The Gram matrices (.., *stack, n, n) and the scalars (.., s) of `packed` arrays.

    >>> unpacked(np.array([1.0, 0.0, 0.0, 1.0, 3.0]), 2)[1]
    array([3.])
    """
    count = math.prod(stack) * n * n
    return saved[..., :count].reshape(*saved.shape[:-1], *stack, n, n), saved[..., count:]


@dataclasses.dataclass(frozen=True, eq=False)
class Eigenspaces:
    """Inputs x_j ~ N(mean_j, variance_j), independent, whose coordinates stand in blocks one after the other.

    Block l has `dimension[l]` coordinates.  Cluster c of the inputs has `probability[c]`.  For compressed SGD all
    coordinates of a block have the variance `eigenvalue[c, l]` in it; explicit SGD draws by `variances()`, (C, d),
    which may differ within a block.  The mean of a cluster is the sum of `mean_weights[c]` (N,) times the last N fixed
    vectors, and `label[c]` (None: 0) is added to the labels of its samples.

    Where a user's inputs are given, explicit SGD draws rows of `samples()`, (count, d), in their place, and adds
    `targets()` (count,) to their labels.  `frame()` are the last fixed vectors (.., d), those that are given and not by
    their Gram matrices alone; None where there are none.
    """

    eigenvalue: np.ndarray
    dimension: np.ndarray
    variances: Callable[[], np.ndarray]
    probability: np.ndarray
    mean_weights: np.ndarray
    label: np.ndarray | None
    samples: Callable[[], np.ndarray] | None = None
    count: int = 0
    targets: Callable[[], np.ndarray] | None = None
    frame: Callable[[], np.ndarray | None] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScalarModel(Model):
    """A `Model` of inputs x ~ N(0, I_d) with trained numbers s beside the vectors u_k.

        coefficients(fields, labels, vv, scalars, *numbers) -> (trained + further, ...)   per sample; the first
            `trained` rows are those of a `Model`, with fields of the raw vectors and vv (trained,) their squared
            norms; the means of the `further` rows over the batch reach `update`; the last (s,) of them are the
            derivatives of the loss in the scalars
        update(vv, vg, gg, means, scalars, step_size, *numbers) -> (a, b, new scalars)   means (further,)
        draw(uniform, normal, *numbers) -> labels   there is no `mean`

    `scalars(initial)` are the numbers (s,) at the start and `further(parameters)` counts the further rows.  The
    functions stand in no file: `written()` is the text of a module that holds them, and `stem` a name that changes with
    it; `module` is what writes it, and `helpers` are the functions of that text that are no roles.

    Explicit SGD takes nothing of this but `update`, whose further rows of norms are then 0: it differentiates
    losses(vectors (n, d), scalars (s,), x (samples, d), labels (.., samples), *numbers) -> (samples,), in JAX.
    Where vectors or numbers move by rules, moves(vectors, scalars, x, labels, *numbers) takes its place: the sums over
    the samples of what every trained vector (students, d) and number (s,) moves by.  None: the derivatives of losses.
    `wrong`, with the same arguments, is 1 for a sample whose label has another sign than the network's answer; None
    where labels have no signs.

    SGD with momentum has velocities of the trained vectors and numbers.  `velocities(initial)` are then the Gram matrix
    (n + S, n + S) of all rows with the velocities behind them, and the velocities (s,) of the numbers; None without.
    `kept(parameters, saved)` are velocities at the end of a run that are no order parameters, so that it can go on.
    In the place of `update` is
    accelerate(means, scalars, velocities, step_size, *numbers) -> (parts of v, u and the gradient in the new v (S,),
        the same in the new u, new scalars, new velocities), and `observe` takes Gram matrices and scalars with them.

    Where `lengths` is true the coefficients depend on the length of a sample too:
    coefficients(fields, labels, lengths, vv, scalars, *numbers), with the row |x|^2/d of `lengths` (1, ...).

    `degree` is that of the units as polynomials of their fields, 0 where some unit or the loss is none: means of
    coefficients are then exact by a quadrature of finitely many nodes.

    Samples come in episodes of `episode` samples: a batch of B has B of these, one after another, and coefficients
    and `moves` take whole episodes.

    `observe` takes `packed` Gram matrices and scalars; `fixed(initial)` are the constants that are saved with a run.
    Where `spaces(parameters)` is not None the inputs have its law in place of N(0, I); with several eigenspaces
    `place` gives one Gram matrix for each, of the parts of the vectors in it, and so are those that are saved.
    """

    scalars: Callable[[Initial], np.ndarray]
    further: Callable[[Any], int]
    losses: Callable[..., Any]
    written: Callable[[], str]
    stem: str
    fixed: Callable[[Initial], Labelled]
    spaces: Callable[[Any], Eigenspaces | None] = lambda parameters: None
    wrong: Callable[..., Any] | None = None
    moves: Callable[..., tuple[Any, Any]] | None = None
    velocities: Callable[[Initial], tuple[np.ndarray, np.ndarray]] | None = None
    kept: Callable[[Any, np.ndarray], Labelled] | None = None
    lengths: bool = False
    episode: int = 1
    degree: int = 0
