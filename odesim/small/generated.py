"""The module that is generated and compiled for one small flow."""

import inspect
from collections.abc import Mapping

from derivations.contract import Kernel
from odesim.flow import blocks

LANE_LOOPS = (
    "first_candidate",
    "cubic_root",
    "resolution",
    "load_lane",
    "accept",
    "newton",
    "take_step",
    "march_lanes",
)


def module_text(stem: str, kernels: Mapping[str, Kernel], n: int) -> str:
    """The module that numba compiles for one flow: lanes, and the blocks with which stiff flows go on."""
    from odesim.code import compile
    from odesim.flow import block_loops
    from odesim.small import lane_loops, lanes

    texts = lanes.block_functions(kernels["slopes"], n)
    texts += [inspect.getsource(getattr(block_loops, name)) for name in blocks.LOOPS]
    texts += lanes.lane_functions(kernels["slopes"], n)
    texts += [inspect.getsource(getattr(lane_loops, name)) for name in LANE_LOOPS]
    return compile.generate_module(stem, kernels, ()) + "\n\n" + compile.decorated(texts)
