"""Distribution of the inputs as data: eigenvalues in blocks or a spectrum, clusters with means and labels, user's
samples.
"""

import dataclasses

from derivations.declare.array_files import ArrayFile
from derivations.declare.grammar import Tree


@dataclasses.dataclass(frozen=True)
class Mean:
    """Named vector for the means of clusters: its Euclidean norm and its direction.

    `teacher` are its cosines with the teacher's vectors (empty: orthogonal to them), `spread` the part of its squared
    norm in every block (empty: in proportion to the shares). A mean of a user's samples is given by its coordinates,
    and has no `norm` here.
    """

    name: str
    norm: Tree | None
    teacher: tuple[float, ...] = ()
    spread: tuple[float, ...] = ()


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Cluster of inputs N(mean, covariance), drawn with a probability.

    `mean` is linear in the named means (None: 0). The covariance has its own `eigenvalues`, one for each block, or
    those of all inputs (empty), times `scale`. With a `label` this is the label of the samples, instead of that of a
    teacher.
    """

    probability: Tree
    mean: Tree | None = None
    eigenvalues: tuple[Tree, ...] = ()
    scale: Tree | None = None
    label: Tree | None = None


@dataclasses.dataclass(frozen=True)
class Inputs:
    """Distribution of the inputs x: blocks of coordinates, each with one eigenvalue, or a spectrum that is divided into
    blocks.

    With `clusters` it is a mixture of Gaussians whose covariances have these blocks in common.

    `blocks` are pairs (eigenvalue, share of the coordinates), of which one share may be None, for the rest. `spectrum`
    is the eigenvalue of coordinate j = 1, .., d, which is approximated by at most `bins` blocks. With `trace` all
    eigenvalues have a common factor, so that their mean is this number; otherwise they are unchanged.

    `spread` is the distribution of the teacher's vectors over the blocks: "even" (in proportion to the shares),
    "random" (directions drawn at the start), the share of every block in the squared norm, the size of coordinate j, or
    the vectors (teachers, d) themselves.

    Instead of a spectrum there can be `eigenvalues` (d,), a `covariance` (d, d), or `data`, samples (N, columns), for
    which the theory uses the eigenvalues of the covariance. `label` (N,) are the samples' labels, few different ones:
    `classes` are pairs of a label and the number of its samples, and each is a cluster. With `centre` the mean of all
    samples is removed.
    """

    blocks: tuple[tuple[Tree, Tree | None], ...] = ()
    spectrum: Tree | None = None
    bins: int = 128
    trace: Tree | None = None
    spread: str | tuple[float, ...] | Tree | ArrayFile = "even"
    eigenvalues: ArrayFile | None = None
    covariance: ArrayFile | None = None
    data: ArrayFile | None = None
    means: tuple[Mean, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    label: ArrayFile | None = None
    classes: tuple[tuple[float, int], ...] = ()
    centre: bool = True

    @property
    def labels(self) -> bool:
        """True if every cluster has a label, which replaces a teacher."""
        return any(cluster.label is not None for cluster in self.clusters)

    @property
    def moved(self) -> bool:
        """True if fields have means."""
        return any(cluster.mean is not None for cluster in self.clusters)

    @property
    def varied(self) -> bool:
        """True if clusters differ in their covariances."""
        explicit = any(cluster.eigenvalues or cluster.scale is not None for cluster in self.clusters)
        return explicit or len(self.classes) > 1
