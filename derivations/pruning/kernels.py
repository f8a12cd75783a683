"""The symbolic step: one scalar potential per kind of input, and its derivatives as compiled kernels.

For a sample of label y with selected tokens J the pooled activation of an expert is

    sbar = sum_j G_j sigma_j,   G = softmax of the logits over J,

and under the linear loss 1 - y f, f = sum_s a_s sbar_s, minus the gradient of one expert is y a_s grad sbar: experts
decouple (equations (14) to (19) of the paper). Activations depend on a neuron only through its alignment, and all
active neurons of an expert move alike, so that the potential Phi = E[y sbar] of (h, sigma) determines the dynamics:

    dh_p/dt = eta_r a dPhi/dh_p,      du_rp/dt = eta_e a dPhi/dsigma_p 1[u_rp >= 0].

If J contains one task token and l - 1 copies of one pattern ("single" data), sbar has two terms.
"""

import functools
from collections.abc import Mapping
from typing import Any

import sympy as sp

from derivations.contract import Kernel

X, L, ONE, TWO = sp.symbols("x l sigma_o sigma_q", real=True)
"""The gap h_o - h_q, the number of selected tokens, and the activations of task token and irrelevant pattern."""
H, Q = sp.symbols("h_o h_q", real=True)


@functools.cache
def pooled() -> Any:
    """sbar of one task token and l - 1 copies of q, both selected (equation (4) with l tokens of two patterns)."""
    own, other = sp.exp(H), (L - 1) * sp.exp(Q)
    return (own * ONE + other * TWO) / (own + other)


def in_gap(expression: Any) -> Any:
    """`pooled` as a function of the gap x = h_o - h_q, through exp(-x), which does not overflow if the task token
    leads.
    """
    return sp.simplify(expression.subs(H, Q + X)).rewrite(sp.exp)


@functools.cache
def single_kernels() -> Mapping[str, Kernel]:
    """`gate`: (S, 1 - S, S (1 - S)), the masses of task and irrelevant tokens and the router's pull per activation.

    They are the derivatives of the pooled activation: S = d sbar/d sigma_o, 1 - S = d sbar/d sigma_q, and
    S (1 - S) (sigma_o - sigma_q) = d sbar/d h_o = - d sbar/d h_q.
    """
    e = sp.Symbol("e", positive=True)
    mass = sp.together((sp.diff(pooled(), ONE) / sp.exp(H)).subs(H, Q + X))
    mass = sp.simplify((mass * sp.exp(Q + X)).subs(X, -sp.log(e)))
    rest = sp.simplify(1 - mass)
    pull = sp.simplify((sp.diff(pooled(), H) / (ONE - TWO)).subs(H, Q + X).subs(X, -sp.log(e)))
    outputs = {"mass": mass, "rest": sp.factor(rest), "pull": sp.factor(pull)}
    stable = {name: value.subs(e, sp.exp(-X)) for name, value in outputs.items()}
    return {"gate": Kernel((), ("x", "l"), stable)}
