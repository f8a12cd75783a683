"""Definition of SGD in a stage whose step also moves numbers (readouts, biases) or depends on norms."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from derivations.contract.model import Model
from derivations.contract.state import Initial, Labelled


def packed(gram: np.ndarray, scalars: np.ndarray) -> np.ndarray:
    """Pack Gram matrices (.., n, n) and scalars (.., s) into one array (.., n n + s), the form that a run saves.

    For inputs with L eigenspaces the matrices are (.., L, n, n), and the array has L n n + s numbers.

    >>> packed(np.eye(2), np.array([3.0]))
    array([1., 0., 0., 1., 3.])
    """
    return np.concatenate([gram.reshape(*scalars.shape[:-1], -1), scalars], axis=-1)


def unpacked(saved: np.ndarray, n: int, stack: tuple[int, ...] = ()) -> tuple[np.ndarray, np.ndarray]:
    """Return the Gram matrices (.., *stack, n, n) and the scalars (.., s) of `packed` arrays.

    >>> unpacked(np.array([1.0, 0.0, 0.0, 1.0, 3.0]), 2)[1]
    array([3.])
    """
    count = math.prod(stack) * n * n
    return saved[..., :count].reshape(*saved.shape[:-1], *stack, n, n), saved[..., count:]


@dataclasses.dataclass(frozen=True, eq=False)
class Eigenspaces:
    """Independent inputs x_j ~ N(mean_j, variance_j), with coordinates in consecutive blocks.

    Block l has `dimension[l]` coordinates.  Cluster c of the inputs has `probability[c]`.  For compressed SGD all
    coordinates of a block have the variance `eigenvalue[c, l]` in it; explicit SGD draws by `variances()`, (C, d),
    which may differ within a block.  The mean of a cluster is the sum of `mean_weights[c]` (N,) times the last N fixed
    vectors, and `label[c]` (None: 0) is added to the labels of its samples.

    If the user gives data, explicit SGD draws rows of `samples()`, (count, d), instead, and adds `targets()` (count,)
    to their labels.  `frame()` returns the last fixed vectors (.., d), if the user gives these vectors and not only
    their Gram matrices; otherwise None.
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
    """A `Model` whose trained quantities are vectors u_k and numbers s (readouts, biases).

    The functions are not in a file.  `written()` returns the text of their module, and `stem` is a name that changes
    with this text.  `module` names the code that writes the text, and `helpers` the functions of the text without a
    role.  Compressed SGD uses these functions:

        coefficients(fields, labels, vv, scalars, *numbers) -> (trained + further, ...)   per sample.  The first
            `trained` rows are those of a `Model`, for fields of the raw vectors, whose squared norms are vv (trained,).
            `update` gets the means of the `further` rows over the batch.  The last s of these rows are the derivatives
            of the loss with respect to the numbers.
        update(vv, vg, gg, means, scalars, step_size, *numbers) -> (a, b, new scalars)   with means (further,)
        draw(uniform, normal, *numbers) -> labels   (a `ScalarModel` has no function `mean`)

    Explicit SGD uses only `update`, where the further rows of norms are 0, and these functions in JAX:

        losses(vectors (n, d), scalars (s,), x (samples, d), labels (.., samples), *numbers) -> (samples,)
            which it differentiates
        moves(vectors, scalars, x, labels, *numbers)   if vectors or numbers move by rules, instead of the derivatives:
            sums over the samples of the changes of the trained vectors (students, d) and of the numbers (s,)
        wrong   with the same arguments as `losses`: 1 for a sample whose label and output have different signs.  It is
            None if labels have no signs.

    Momentum adds velocities of the trained vectors and numbers, and replaces `update` by

        accelerate(means, scalars, velocities, step_size, *numbers) -> (components of the new v along v, u and the
            gradient (S,), the same for the new u, new scalars, new velocities)

    `observe` then takes Gram matrices and scalars that include the velocities.

    Attributes:
        scalars: scalars(initial) returns the numbers (s,) at the start.
        further: further(parameters) returns the number of further rows.
        fixed: fixed(initial) returns the constants that are saved with a run.
        spaces: spaces(parameters) returns the `Eigenspaces` of the inputs, or None for N(0, I).  With several
            eigenspaces `place` returns one Gram matrix for each, of the components of the vectors in this space, and
            a run saves these matrices.
        velocities: velocities(initial) returns the Gram matrix (n + S, n + S) of all vectors, followed by their
            velocities, and the velocities (s,) of the numbers.  It is None without momentum.
        kept: kept(parameters, saved) returns the velocities at the end of a run that are not order parameters, so
            that the run can be continued.
        lengths: If true, the coefficients also depend on the length of a sample: coefficients(fields, labels, lengths,
            vv, scalars, *numbers), where `lengths` (1, ...) is |x|^2/d.
        episode: Number of samples in an episode.  A batch of B consists of B episodes, one after the other, and
            `coefficients` and `moves` take whole episodes.
        degree: Degree of the units as polynomials of their fields.  Means of coefficients are then exact by a
            quadrature with finitely many nodes.  It is 0 if a unit or the loss is not a polynomial.

    `observe` takes `packed` Gram matrices and scalars.
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
