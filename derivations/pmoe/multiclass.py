"""The multi-class extension at infinite width with perfect routers: the flow to a level of v, for c classes.

f_i(x) = (1/l) sum_s sum_z n_s G_s phi_{s,i}(z) with one expert per class, softmax cross-entropy, and

    d phi_{s,i}(z)/dflow = (1/c) sum_z' K(z, z') E[(1(y = i) - softmax_i) n_s(z') G_s/l]

for orthonormal patterns o_1..o_c and one irrelevant pattern q, whose n - 1 >= l copies fill the remaining places.
Source: Chowdhury et al. 2023, Appendix M; the closed form for one irrelevant pattern is ours.
"""

import math

import numpy as np


def drive(phi: np.ndarray, l: int, gate: float) -> tuple[np.ndarray, float]:  # noqa: E741
    """(E[(1(y = i) - softmax_i) n_s G_s]/l (c, c, 2), mean of 1 - softmax_y), phi (expert, output, [o_s, q])."""
    c = len(phi)
    own, rest = phi[:, :, 0], phi[:, :, 1]
    everyone = l * rest.sum(axis=0)
    f = (
        gate / l * (everyone[None] - rest + own)
    )  # class y: expert y has o_y once and q l - 1 times, the others q l times
    raised = np.exp(f - f.max(axis=1, keepdims=True))
    share = raised / raised.sum(axis=1, keepdims=True)
    error = (np.eye(c) - share) / c
    found = np.zeros_like(phi)
    found[:, :, 0] = gate / l * error
    found[:, :, 1] = gate / l * (l * error.sum(axis=0)[None] - error)
    return found, float(1 - np.mean(np.diag(share)))


def flow_to(goal: float, c: int, l: int, uniform: bool = False) -> float:  # noqa: E741
    """The flow after which 1 - softmax_y has fallen to `goal`, from zero responses; gates 1, or 1/l each.

    By symmetry an expert's response to o_s has one value for the output of its class and one for the others.
    """
    from scipy.integrate import solve_ivp

    gate = 1 / l if uniform else 1.0
    shape = (c, c, 2)

    def slope(t: float, y: np.ndarray) -> np.ndarray:
        return 0.5 / c * drive(y.reshape(shape), l, gate)[0].reshape(-1)

    def event(t: float, y: np.ndarray) -> float:
        return drive(y.reshape(shape), l, gate)[1] - goal

    event.terminal = True  # type: ignore[attr-defined]
    found = solve_ivp(slope, (0.0, 1e12), np.zeros(2 * c * c), events=event, rtol=1e-8, atol=1e-10)
    return float(found.t_events[0][0]) if len(found.t_events[0]) else math.inf
