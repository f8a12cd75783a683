"""The network of a run on given samples: outputs, margins, and the gate of the first token at every expert."""

from collections.abc import Mapping

import numpy as np

from derivations.answers import answers, check_names, whole_numbers
from derivations.contract import Labelled, UsageError
from derivations.pruning import model
from derivations.pruning.parameters import Parameters


def predict(parameters: Parameters, arrays: Mapping[str, np.ndarray], inputs: Mapping[str, np.ndarray]) -> Labelled:
    """f(x) = sum_s a_s sum_{j in J_s} G_j sigma_s(x_j) of samples `tokens` (N, n), numbers of patterns.

    The head signs `a` (k,) are those of the run, or of `inputs` if the run does not contain them (training). Raises
    `UsageError`. Source: Chowdhury et al. 2024, equations (4) and (7).
    """
    check_names(inputs, ("tokens",), ("y", "a"))
    missing = [name for name in ("h", "sigma") if name not in arrays]
    if missing:
        raise UsageError(f"this run lacks {', '.join(missing)}: tier homogeneous has no patterns for samples")
    h, sigma = np.asarray(arrays["h"], float), np.asarray(arrays["sigma"], float)
    signs = arrays["a"] if "a" in arrays else inputs.get("a")
    if signs is None or np.shape(signs) != (len(h),):
        raise UsageError(
            f"the head signs a of the {len(h)} experts are not in this run: give them as a among the inputs"
        )
    tokens = whole_numbers(inputs["tokens"], "tokens", h.shape[1]).T
    if len(tokens) < parameters.l:
        raise UsageError(f"samples have {len(tokens)} tokens, but every expert needs l = {parameters.l}")
    given = (tokens, np.ones(tokens.shape), np.ones(tokens.shape[1]))
    output, gate = model.respond(h, sigma, given, parameters, {"a": signs})
    first = (("expert", "sample"), gate, "gate mass of the first token of the sample at every expert")
    return answers(output, inputs, first_gate=first)
