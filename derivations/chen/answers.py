"""The network of a run on given samples: the selected expert, its output, and margins."""

from collections.abc import Mapping

import numpy as np

from derivations.answers import SAMPLE, answers, check_names
from derivations.chen import model
from derivations.chen.parameters import ACTIVATIONS, Parameters
from derivations.contract import Labelled, UsageError


def predict(parameters: Parameters, arrays: Mapping[str, np.ndarray], inputs: Mapping[str, np.ndarray]) -> Labelled:
    """F(x) = pi_m(x) f_m(x), m the largest logit, of patches `X` (N, P, 2 K) in the coordinates of v_1..v_K, c_1..c_K.

    A run contains its weights only along the signals, so that patches must lie in their span. Raises `UsageError` for
    the released protocol, whose filters have biases that a run does not contain. Source: Chen et al. 2022, equations
    (3.1) to (3.4).
    """
    check_names(inputs, ("X",))
    if parameters.variant != "paper":
        raise UsageError(
            "a run of variant=released does not have the biases of the filters, so its network cannot be evaluated"
        )
    missing = [name for name in ("feat", "cen", "gcen", "gfeat") if name not in arrays]
    if missing:
        raise UsageError(f"this run lacks {', '.join(missing)}: take one of tier p3 or full, or of training")
    filters = np.concatenate([arrays["feat"], arrays["cen"]], axis=-1)
    routers = np.concatenate([arrays["gfeat"], arrays["gcen"]], axis=-1)
    x = np.asarray(inputs["X"], float)
    if x.ndim != 3 or x.shape[2] != filters.shape[2] or not np.isfinite(x).all():
        raise UsageError(
            f"X must have shape (samples, patches, 2 K = {filters.shape[2]}), coordinates of the patches along the "
            f"signals, but has {x.shape}"
        )
    logits = routers @ x.sum(axis=1).T
    expert = logits.argmax(axis=0)
    kind = ACTIVATIONS.index(parameters.activation)
    value = model.activation(np.einsum("mjf,npf->mnjp", filters, x), kind, parameters.power)[0].sum(axis=(2, 3))
    raised = np.exp(logits - logits.max(axis=0))
    share = raised / raised.sum(axis=0)
    index = np.arange(len(x))
    return answers(
        share[expert, index] * value[expert, index], inputs,
        expert=(SAMPLE, expert, "expert of the largest logit"),
        gate=(SAMPLE, share[expert, index], "softmax weight of that expert"),
        logits=(("expert", "sample"), logits, "logits of the routers"),
    )  # fmt: skip
