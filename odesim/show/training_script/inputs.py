"""The inputs of a training script: scales of the coordinates by blocks, and clusters with means and labels."""

import dataclasses
from typing import Any

import numpy as np

from derivations.declare import mixture, spectra
from derivations.declare.declaration import Declaration


@dataclasses.dataclass(frozen=True, eq=False)
class Inputs:
    """Inputs x = mean_c + scale_c * N(0, I) of cluster c: the lines that define the arrays, and their names."""

    lines: tuple[str, ...] = ()
    scaled: bool = False
    clusters: bool = False
    moved: bool = False
    labelled: bool = False

    @classmethod
    def build(cls, parameters: Any) -> "Inputs":
        """Return the inputs of a declaration at its parameters."""
        declared: Declaration = parameters.declaration
        blocks, law = spectra.blocks(parameters), mixture.mixture(parameters)
        if declared.inputs is None or blocks is None or law is None:
            return cls()
        clusters = len(law.probability) > 1
        dimensions = blocks.dimension.tolist()
        if clusters and declared.inputs.varied:
            text = f"np.sqrt(np.repeat({law.eigenvalue.tolist()}, {dimensions}, axis=1))"
        elif len(dimensions) == 1:
            size = f"({len(law.probability)}, d)" if clusters else "d"
            text = f"np.sqrt({float(blocks.eigenvalue[0])!r}) * np.ones({size})"
        else:
            text = f"np.sqrt(np.repeat({blocks.eigenvalue.tolist()}, {dimensions}))"
        about = "standard deviation of every coordinate" + (", by cluster" if clusters else "")
        lines = [f"scale = {text}  # {about}"]
        if clusters and not declared.inputs.varied and len(dimensions) > 1:
            lines.append(f"scale = np.tile(scale, ({len(law.probability)}, 1))  # equal in all clusters")
        if clusters:
            lines.append(f"probability = np.array({law.probability.tolist()})  # of the clusters")
        moved = bool(np.any(law.mean))
        if moved:
            lines.append(f'mean = np.array({law.mean.tolist()}) @ fixed["mean_m_star"]  # of every cluster')
        if law.label is not None:
            lines.append(f"label = np.array({law.label.tolist()})  # of every cluster")
        return cls(tuple(lines), True, clusters, moved and clusters, law.label is not None)
