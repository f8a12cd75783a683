"""Common properties of models on finite alphabets: vectors of a frame, and patterns.

Types only. An engine gets these numbers from a model, and uses no parameter of a system by name.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Sizes of a network and its samples.

    `experts` k with `neurons` each and `outputs` per expert; `frame` vectors in the alphabet, in `width` dimensions; a
    step of batch B takes `blocks` B samples of `patches` patches each (several blocks if every group of classes
    averages over separate samples).
    """

    experts: int
    neurons: int
    outputs: int
    frame: int
    width: int
    patches: int
    blocks: int = 1
