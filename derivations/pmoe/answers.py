"""The network of a run on given samples: outputs, margins, and the patches of every expert."""

from collections.abc import Mapping

import numpy as np

from derivations.answers import answers, check_names, class_answers, whole_numbers
from derivations.contract import Labelled, UsageError
from derivations.pmoe import model
from derivations.pmoe.parameters import Parameters, settle


def predict(parameters: Parameters, arrays: Mapping[str, np.ndarray], inputs: Mapping[str, np.ndarray]) -> Labelled:
    """f(x) = (1/l) sum_s sum_z n_s(z) G_s(z) phi_s(z) of samples `index` (N, n) or `counts` (N, P) of patterns.

    With an output per class f_i and phi_{s,i}, the class of the largest, and labels `y` from 1 to c.
    Raises `UsageError` for runs without experts (stage router), and for samples with fewer than l patches.
    Source: Chowdhury et al. 2023, equations (1), (4) and (23).
    """
    name = check_names(inputs, ("index", "counts"))
    if "response" not in arrays:
        raise UsageError(
            "this run trains only the routers, so its network cannot be evaluated: use a run of stage experts"
        )
    response, route = np.asarray(arrays["response"], float), np.asarray(arrays["route"], float)
    P = response.shape[-1]
    if name == "index":
        index = whole_numbers(inputs["index"], "index", P)
        counts = (index[:, :, None] == np.arange(P)).sum(axis=1)
    else:
        counts = whole_numbers(inputs["counts"], "counts", 10**9)
        if counts.shape[1] != P:
            raise UsageError(f"counts must have a column for each of {P} patterns, but has shape {counts.shape}")
    p = settle(parameters) if parameters.k == 0 else parameters
    if counts.sum(axis=1).min() < p.l:
        raise UsageError(f"a sample has {int(counts.sum(axis=1).min())} patches, but every expert needs l = {p.l}")
    routed = model.top_l(route[:, :, None], counts.T.astype(float), p.l)
    share = model.gates(route[:, :, None], routed, p.l, model.GATES.get(p.gate, 0))
    taken = (("expert", "pattern", "sample"), routed, "copies of a pattern among the l patches that an expert takes")
    if response.ndim == 3:
        return class_answers(np.einsum("szn,siz->in", share, response) / p.l, inputs, routed=taken)
    return answers((share * response[:, :, None]).sum(axis=(0, 1)) / p.l, inputs, routed=taken)
