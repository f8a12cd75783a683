"""The law of the inputs as data: eigenvalues in blocks or a spectrum, clusters with means and labels, own samples."""

import dataclasses

from derivations.declare.array_files import ArrayFile
from derivations.declare.grammar import Tree


@dataclasses.dataclass(frozen=True)
class Mean:
    """A named vector of which the means of clusters are made: its Euclidean norm and where it points.

    `teacher` are its cosines with the teacher's vectors (empty: orthogonal to them), `spread` the part of its squared
    norm in every block (empty: in proportion to the shares).  A mean of a user's samples is known by its coordinates,
    and has no `norm` here.
    """

    name: str
    norm: Tree | None
    teacher: tuple[float, ...] = ()
    spread: tuple[float, ...] = ()


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Inputs N(mean, covariance) that are drawn with a probability.

    `mean` is linear in the named means (None: 0).  The covariance has its own `eigenvalues`, one for each block, or
    those of all inputs (empty), times `scale`.  With a `label` the samples are labelled by it and not by a teacher.
    """

    probability: Tree
    mean: Tree | None = None
    eigenvalues: tuple[Tree, ...] = ()
    scale: Tree | None = None
    label: Tree | None = None


@dataclasses.dataclass(frozen=True)
class Inputs:
    """The law of the inputs x: blocks of coordinates, each with one eigenvalue, or a spectrum put into blocks.

    With `clusters` it is a mixture of Gaussians whose covariances have these blocks in common.

    `blocks` are pairs (eigenvalue, share of the coordinates), of which one share may be None, for what the others
    leave.  `spectrum` is the eigenvalue of coordinate j = 1, .., d, for which at most `bins` blocks stand.  With
    `trace` all eigenvalues have a common factor, so that their mean is this number; without, they are as written.

    `spread` says how the teacher's vectors are spread over the blocks: "even" (in proportion to the shares), "random"
    (directions drawn at the start), the share of every block in the squared norm, the size of coordinate j, or the
    vectors (teachers, d) themselves.

    In the place of a spectrum can be `eigenvalues` (d,), a `covariance` (d, d), or `data`, samples (N, columns) of
    which theory takes the eigenvalues of the covariance.  `label` (N,) are the samples' labels, few different ones:
    `classes` are pairs of a label and the number of its samples, and each is a cluster.  With `centre` the mean of all
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
        """True where every cluster has a label, which takes the place of a teacher."""
        return any(cluster.label is not None for cluster in self.clusters)

    @property
    def moved(self) -> bool:
        """True where fields have means."""
        return any(cluster.mean is not None for cluster in self.clusters)

    @property
    def varied(self) -> bool:
        """True where clusters differ in their covariances."""
        own = any(cluster.eigenvalues or cluster.scale is not None for cluster in self.clusters)
        return own or len(self.classes) > 1
