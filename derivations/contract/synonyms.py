"""Synonyms of the field: terms of other programs and papers for the terms of odesim.

By spelling the nearest word of `sigmoid` is `sign`, and that of `weight_decay` is `weights`; these tables are therefore
used first.
"""

import re
from collections.abc import Collection, Mapping

PAGE = "docs/own-model.md"
"""Page of the documentation with the scope of a declaration."""

WORDS: Mapping[str, tuple[str, ...]] = {
    # functions
    "sigmoid": ("logistic",), "sigm": ("logistic",), "expit": ("logistic",), "swish": ("silu",), "heaviside": ("step",),
    "sgn": ("sign",), "signum": ("sign",), "phi_cdf": ("probit",), "normcdf": ("probit",),
    "ndtr": ("probit",), "cdf": ("probit",), "ln": ("log",), "rectifier": ("relu",), "hermite": ("He",),
    "fabs": ("abs",), "argmax": ("top1",), "hardmax": ("top1",),
    # losses and readouts
    "mse": ("squared",), "square": ("squared",), "squares": ("squared",), "l2": ("squared", "decay"),
    "quadratic": ("squared",), "mean_squared_error": ("squared",), "bce": ("logistic",), "cross_entropy": ("logistic",),
    "crossentropy": ("logistic",), "log_loss": ("logistic",), "nll": ("logistic",), "svm": ("hinge",),
    "correlational": ("correlation",), "average": ("mean",), "avg": ("mean",), "learned": ("trained",),
    "learnt": ("trained",), "trainable": ("trained",),
    # training
    "lr": ("step", "step_size"), "learning_rate": ("step", "step_size"), "learningrate": ("step", "step_size"),
    "eta": ("step", "step_size"), "step_size": ("step",), "stepsize": ("step", "step_size"), "dt": ("step",),
    "weight_decay": ("decay",), "wd": ("decay",), "ridge": ("decay",), "regularization": ("decay",),
    "regularisation": ("decay",), "l2_reg": ("decay",), "batch_size": ("batch",), "batchsize": ("batch",),
    "minibatch": ("batch",), "mini_batch": ("batch",), "epochs": ("until",), "steps": ("until",),
    "iterations": ("until",), "n_steps": ("until",), "horizon": ("until",), "t_max": ("until",), "tmax": ("until",),
    "duration": ("until",), "objective": ("loss",), "criterion": ("loss",), "cost": ("loss",),
    "train": ("trained", "training"),
    "constraint": ("weights",), "spherical": ("sphere",), "normalized": ("normalised",), "unconstrained": ("free",),
    "gradient_flow": ("flow",), "sgd": ("online",), "one_pass": ("online",), "giant": ("batch",),
    "giant_step": ("batch",), "giant_steps": ("batch",), "large_batch": ("batch",), "full_batch": ("batch",),
    "optimisation": ("training",),
    # networks
    "activation": ("unit",), "act": ("unit",), "nonlinearity": ("unit",), "activation_function": ("unit",),
    "function": ("unit",), "phi": ("unit",), "hidden": ("units",), "hidden_units": ("units",), "width": ("units",),
    "neurons": ("units",), "n_hidden": ("units",), "num_units": ("units",), "k": ("units",), "m": ("units",),
    "size": ("units",), "readout": ("output",), "second_layer": ("output",), "head": ("output",), "model": ("student",),
    "network": ("student",), "net": ("student",), "target": ("teacher", "y"), "targets": ("teacher", "y"),
    "yhat": ("f",), "y_hat": ("f",), "prediction": ("f",), "label": ("y",), "labels": ("y",),
    "label_noise": ("noise",), "noise_std": ("noise",), "sigma": ("noise", "logistic"), "gram_matrix": ("gram",),
    "init": ("start",), "initial": ("start",), "initialisation": ("start",), "initialization": ("start",),
    "params": ("parameters",), "constants": ("parameters",), "numbers": ("parameters",), "description": ("about",),
    "url": ("link",), "authors": ("source",), "paper": ("source",), "events": ("event",), "presets": ("preset",),
    "episodes": ("episode",),
    "claims": ("claim",), "stages": ("stage",), "tasks": ("stage",), "heads": ("head",), "beta1": ("momentum",),
    "memories": ("memory",), "dim": ("d",), "dimension": ("d",), "input_dim": ("d",), "n_features": ("d",),
    "random_seed": ("seed",), "rng": ("seed",), "random_state": ("seed",), "replicas": ("seeds",),
    "n_seeds": ("seeds",),
    "times": ("save_at",), "ts": ("save_at",), "t_eval": ("save_at",), "saveat": ("save_at",),
    "n_points": ("save_points",),
    "until_time": ("until",), "t_end": ("until",), "reltol": ("rtol",), "abstol": ("atol",), "std": ("norm",),
    "scale": ("norm",), "q": ("Q_ww",), "r": ("M_ww",),
}  # fmt: skip
"""Terms of the field, each with its possible equivalents in odesim, the most likely first."""

TABLES: Mapping[str, str] = {
    "unit": "[student] and [teacher]", "units": "[student] and [teacher]", "output": "[student] and [teacher]",
    "gram": "[teacher]", "noise": "[teacher]", "loss": "[training]", "weights": "[training]", "limit": "[training]",
    "step": "[training]", "batch": "[training]", "decay": "[training]", "trained": "[training]", "until": "[training]",
    "rates": "[training]", "rule": "[training]", "head": "[training]", "momentum": "[training]",
    "nesterov": "[training]", "episode": "[training]", "prediction": "[student] and [teacher]",
    "norm": "[start]", "overlap": "[start]", "blocks": "[inputs]", "bins": "[inputs]", "trace": "[inputs]",
    "spectrum": "[inputs]", "data": "[inputs]", "spread": "[teacher]",
}  # fmt: skip
"""Tables of a declaration that contain these keys."""

_INPUTS = (
    "inputs are x ~ N(0, I_d) without a table [inputs], which takes blocks, a spectrum, data or clusters "
    "(docs/inputs.md); a system with other inputs is written in Python (docs/own-system.md)"
)
_PLAIN = "training is SGD; the nearest are step, batch, decay and momentum in [training]"
_AGAIN = "every sample is new: a batch is not used again; the nearest is batch in [training], the samples of a step"
_CHANGES = "a step that changes is an expression in t, or pairs of a time and a value: step = [[0, 1.0], [50, 0.1]]"
_BIAS = 'a bias is a scalar of each unit: b = {default = 0.0, per = "unit"} in [parameters], and unit = "relu(w + b)"'
ABSENT: Mapping[str, str] = {
    "input": _INPUTS, "inputs": _INPUTS, "covariance": _INPUTS, "mixture": _INPUTS, "means": _INPUTS,
    "variance": _INPUTS, "dataset": _INPUTS, "distribution": _INPUTS, "features": _INPUTS,
    "input_noise": "inputs have no additional noise; the nearest is noise in [teacher], the deviation of label noise",
    "optimizer": _PLAIN, "optimiser": _PLAIN, "adam": _PLAIN, "betas": _PLAIN, "schedule": _CHANGES,
    "lr_schedule": _CHANGES,
    "dropout": "there is no dropout; the nearest is noise in [teacher]",
    "layers": "a network has one layer of units; the nearest is several groups, [student.one] and [student.two]",
    "depth": "a network has one layer of units; the nearest is several groups, [student.one] and [student.two]",
    "bias": _BIAS, "biases": _BIAS,
    "test": "every sample is new, so the loss of a run is its test error; there is no test set",
    "reuse": _AGAIN, "repeat": _AGAIN, "repeated": _AGAIN, "training_set": _AGAIN, "n_samples": _AGAIN,
    "samples": "every sample is new; the nearest is batch in [training], the samples of a step",
}  # fmt: skip
"""Keys of other programs that a declaration does not have, with the nearest equivalent."""

FORMULAS: Mapping[str, str] = {
    "elu": "elu is not among the functions; the nearest smooth one is softplus(w)",
    "selu": "selu is not among the functions; the nearest smooth one is softplus(w)",
    "leaky_relu": "write relu(w) - 0.01*relu(-w)", "leakyrelu": "write relu(w) - 0.01*relu(-w)",
    "lrelu": "write relu(w) - 0.01*relu(-w)", "prelu": "write relu(w) - 0.01*relu(-w)",
    "relu6": "write relu(w) - relu(w - 6)", "hardtanh": "write relu(w + 1) - relu(w - 1) - 1",
    "mish": "write w*tanh(softplus(w))", "softsign": "softsign is not among the functions; the nearest is tanh(w)",
    "erfc": "write 1 - erf(w)", "sinh": "write (exp(w) - exp(-w))/2", "cosh": "write (exp(w) + exp(-w))/2",
    "max": "write max(0, w) as relu(w)", "maximum": "write max(0, w) as relu(w)", "min": "write min(0, w) as -relu(-w)",
    "minimum": "write min(0, w) as -relu(-w)", "pow": "write a power as w^2", "square": "write a square as w^2",
    "theta": "write the function of Heaviside as step(w)", "h": "write a Hermite polynomial as He(3, w)",
    "logsumexp": "the nearest is softplus(w)", "arctan": "the nearest is tanh(w)", "atan": "the nearest is tanh(w)",
    "gaussian": "write exp(-w^2/2)", "rbf": "write exp(-w^2/2)", "normal": "write exp(-w^2/2)",
}  # fmt: skip
"""Functions of other programs, as an expression here or with the nearest function."""


def meant(word: str, known: Collection[str]) -> str:
    """Return the word among `known` that `word` is a synonym of, or "".

    >>> meant("sigmoid", ["sign", "logistic"]), meant("LR", ["step"]), meant("untill", ["until"])
    ('logistic', 'step', '')
    """
    return next((other for other in WORDS.get(_plain(word), ()) if other in known), "")


def key_hint(word: str, known: Collection[str]) -> str:
    """Return the hint for an unknown key of a declaration, or "" if the word has no synonym.

    >>> key_hint("weight_decay", ["decay", "weights"])
    "did you mean 'decay'?"
    >>> key_hint("lr", ["unit", "units"])
    "it is 'step', a key of [training]"
    """
    plain = _plain(word)
    other = meant(word, known)
    if other:
        return f"did you mean {other!r}?"
    if plain in ABSENT:
        return f"{ABSENT[plain]}; {PAGE} says what a declaration covers"
    for other in (plain, *WORDS.get(plain, ())):
        if other in TABLES and other not in known:
            return f"it is {other!r}, a key of {TABLES[other]}"
    return ""


def function_hint(word: str, known: Collection[str]) -> str:
    """Return the hint for an unknown function of an expression, or "" if it has no synonym.

    >>> function_hint("swish", ["silu", "sin"]), function_hint("ELU", ["relu"])[:15]
    ("did you mean 'silu'?", 'elu is not amon')
    """
    plain = _plain(word)
    if plain in FORMULAS:
        return FORMULAS[plain]
    other = meant(word, known)
    return f"did you mean {other!r}?" if other else ""


def _plain(word: str) -> str:
    """A word in lower case with underscores, as in the tables."""
    return re.sub(r"[\s.-]+", "_", word.strip()).lower()
