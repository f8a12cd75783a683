"""Figure 1, qualitatively: routing of test examples along training, drawn in a plane by t-SNE."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from figures.chen._shared import COLOURS, STEP
from odesim.show.figures import Table

CAPTION = (
    "Test examples in a plane by t-SNE of their patches (one embedding for all panels), after figure 1 of the "
    "paper. The colour is the expert that gets the example under routing noise. Dots are positive and crosses "
    "negative examples. The upper row shows cubic experts and the lower row linear experts, at the start and after "
    "60 and 500 epochs of the released protocol without early stopping, with four experts and four clusters. There "
    "are three differences from the paper. Training has new routing noise in every epoch, but the notebook of the "
    "paper keeps the noise fixed. Noise patches have their own size, which is three times as large in the paper. "
    "There are no decision boundaries. Only neighbourhoods in the plane have a meaning. The numbers are dispatch "
    "entropy and test accuracy."
)
CLAIMS = ("lin-vs-nonlin",)
EPOCHS = (0, 60, 500)
KINDS = ("cubic", "linear")
SIZE = {"K": 4, "M": 4, "J": 16, "P": 4, "d": 50, "rho": 100.0, "variant": "released", "gamma": (1.0, 2.0)}
"""The paper's sizes for this figure; alpha and beta have the laws of every setting."""


def train(activation: str, n: int, shown: Any, epochs: Sequence[int], seed: int) -> tuple[list[Any], ...]:
    """(expert of every shown example, dispatch entropy, accuracy), each a list over epochs, under routing noise."""
    from derivations.chen import initial, model
    from derivations.chen.parameters import Parameters
    from derivations.chen.route import entropy
    from odesim.machine import streams
    from odesim.sgd.patterns import PatternChains

    p = Parameters(**SIZE, activation=activation, n_test=1)  # type: ignore[arg-type]
    start = initial.enter(p, None, streams.generator(seed, "initial"))
    chain = PatternChains(model.MODEL, [start], None, compressed=False, batch=n, step_size=STEP, seed=seed)
    total = shown.dense.sum(axis=1)
    noise = streams.generator(seed, "picture noise").random((p.M, len(shown)))
    experts, entropies, accuracies = [], [], []
    for epoch in epochs:
        chain.advance(epoch - chain.steps)
        *_, expert, margin = chain.pass_over(chain.weights[0], shown, total, noise)
        experts.append(expert.tolist())
        entropies.append(entropy(chain.dispatch(shown.cluster, expert)))
        accuracies.append(float((margin > 0).mean()))
    return experts, entropies, accuracies


def measure(n: int, epochs: list[int], seed: int) -> dict[str, list[Any]]:
    """The embedding of n test examples, their labels and clusters, and the routing of both mixtures by epoch."""
    from derivations.chen import model
    from derivations.chen.parameters import Parameters
    from odesim.errors import MissingError
    from odesim.machine import streams
    from odesim.sgd.patterns import sample

    try:
        from sklearn.manifold import TSNE  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise MissingError("this figure needs scikit-learn: install the extra digits") from None

    p = Parameters(**SIZE)  # type: ignore[arg-type]
    shown = sample(model.MODEL, p, streams.generator(seed, "picture"), n, p.d)
    signals = np.zeros((n, 3, p.d))
    for s in range(3):
        signals[np.arange(n), s, shown.atoms[s]] = shown.amplitudes[s]
    flat = np.concatenate([signals, shown.dense], axis=1).reshape(n, -1)
    place = TSNE(random_state=seed, init="pca", perplexity=min(200.0, n / 8)).fit_transform(flat)
    found = [train(activation, n, shown, epochs, seed) for activation in KINDS]
    columns = {name: [each[k] for each in found] for k, name in enumerate(("expert", "entropy", "accuracy"))}
    return {**columns, "place": place.tolist(), "label": shown.labels.tolist(), "cluster": shown.cluster.tolist(),
            "epoch": epochs}  # fmt: skip


def needs(quick: bool = False) -> list[Table]:
    """1600 examples, as in the paper (half a minute)."""
    return [Table("chen-fig1", measure, {"n": 600 if quick else 1600, "epochs": list(EPOCHS), "seed": 0})]


def draw(stored: Sequence[Any]) -> Any:
    """A panel for each mixture and epoch."""
    import numpy as np
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    table = stored[0]
    place, label, expert = table["place"], table["label"], table["expert"]
    figure = Figure(figsize=(7.2, 5.0), layout="constrained")
    panels = figure.subplots(len(KINDS), len(table["epoch"]), squeeze=False)
    for i, kind in enumerate(KINDS):
        for j, epoch in enumerate(table["epoch"]):
            axis = panels[i][j]
            shades = np.array(COLOURS)[expert[i][j].astype(int)]
            for sign, marker, size in ((1, "o", 2.0), (-1, "x", 6.0)):  # in the order of the data: no expert on top
                here = label == sign
                axis.scatter(*place[here].T, s=size, c=shades[here], marker=marker, linewidths=0.6)
            axis.spines[:].set_visible(False)
            axis.set_xticks([])
            axis.set_yticks([])
            numbers = f"entropy {table['entropy'][i][j]:.2f}, accuracy {table['accuracy'][i][j]:.0%}"
            axis.set_title(f"{kind}, epoch {epoch}\n{numbers}", fontsize=8)
    handles = [
        Line2D([], [], color=COLOURS[m], marker="s", linestyle="", label=f"expert {m + 1}") for m in range(SIZE["M"])
    ]
    handles += [Line2D([], [], color="0.3", marker=marker, markersize=4, linestyle="", label=f"label {sign:+d}")
                for sign, marker in ((1, "o"), (-1, "x"))]  # fmt: skip
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure
