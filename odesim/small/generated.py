"""The module that is generated and compiled for one small flow."""

import hashlib
import inspect
from collections.abc import Mapping
from types import ModuleType

from derivations import cache
from derivations.contract import Kernel
from odesim.code.module_cache import load_module
from odesim.code.printer import scalar_source
from odesim.flow import cubics
from odesim.flow.tableau import weights
from odesim.small import lane_loops, lanes

LANE_LOOPS = ("first_candidate", "cubic_root", "resolution", "load_lane", "accept", "newton", "take_step")
HEAD = """from math import acos, asin, atan, cos, cosh, erf, exp, log, pi, sin, sinh, sqrt, tanh

import numpy as np
from numba import njit, types
from numpy import sign

from derivations.equations.options import INNER, OPTIONS, POINTED
from odesim.code.module_cache import compiled

number, whole, numbers, table = types.float64, types.int64, types.float64[::1], types.float64[:, ::1]
RULE, LIMITS = types.Tuple((whole, number, number, number)), types.UniTuple(number, 2)
TOLERANCES = types.Tuple((number, number, types.boolean))
"""
ENGINE = "from odesim.code.engine import FLOW"
MARCH = "whole(table, whole, RULE, LIMITS, TOLERANCES, whole, numbers, types.int64[::1])"
WRITERS = (__name__, lanes.__name__, lane_loops.__name__, cubics.__name__, scalar_source.__module__)
"""Modules that write the generated module of a flow, or whose functions are copied into it."""


def compiled_lanes(kernels: Mapping[str, Kernel], n: int) -> ModuleType:
    """Return the compiled functions `march_lanes` and `slopes_at` of a flow of n entries."""
    return load_module("lanes", cache.remembered(_stem("lanes", kernels), WRITERS, lambda: lanes_text(kernels, n)))


def compiled_blocks(kernels: Mapping[str, Kernel], n: int) -> ModuleType:
    """Return the compiled functions `block_slope` and `block_jacobian` of a flow, with which stiff flows continue."""
    return load_module("blocks", cache.remembered(_stem("blocks", kernels), WRITERS, lambda: blocks_text(kernels, n)))


def _stem(kind: str, kernels: Mapping[str, Kernel]) -> str:
    """Return a name with a digest of the slopes and of the method's coefficients, which are numbers in the generated
    text.
    """
    said = repr([(name, list(kernel.outputs.items())) for name, kernel in kernels.items()])
    return f"{kind}_{hashlib.sha256(said.encode() + weights().tobytes()).hexdigest()[:16]}"


def lanes_text(kernels: Mapping[str, Kernel], n: int) -> str:
    """Return the module of the lanes of a flow."""
    slopes = kernels["slopes"]
    inner = [scalar_source("slopes", slopes)]
    inner += [inspect.getsource(function) for function in (cubics.measure, cubics.bump, cubics.turning)]
    inner += lanes.lane_functions(slopes, n)
    inner += [inspect.getsource(getattr(lane_loops, name)) for name in LANE_LOOPS]
    march = f"@compiled({MARCH}, **OPTIONS)\n{inspect.getsource(lane_loops.march_lanes)}"
    at = f"@compiled(types.void(numbers, numbers), **OPTIONS)\n{lanes.slopes_at(slopes, n)}"
    return "\n\n".join([HEAD, *(f"@njit(**INNER)\n{text}" for text in inner), at, march])


def blocks_text(kernels: Mapping[str, Kernel], n: int) -> str:
    """Return the module of the functions of a flow as a block."""
    inner = [f"@njit(**INNER)\n{scalar_source(name, kernel)}" for name, kernel in kernels.items()]
    entries = [f"@compiled(FLOW, **POINTED)\n{text}" for text in lanes.block_functions(kernels["slopes"], n)]
    return "\n\n".join([HEAD + ENGINE, *inner, *entries])
