"""Substitute data for figures 4 and 5: accuracy on unseen digits against the share of experts pruned."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from figures.pruning._shared import COLOURS, CRITERIA
from odesim.show.figures import Table

CAPTION = (
    "Digits of scikit-learn replace the images of the paper. They are tokens of an orthonormal dictionary (d = "
    "128, n = 16). 8 + 8 experts are pre-trained to separate even from odd digits. Then they are fine-tuned on two "
    "digits with the gradient of 1 - y f, pruned, and fine-tuned again for the same time. The figure shows the "
    "accuracy on unseen images: mean over seeds, each a mean of three pairs, with bands from 10 to 90 %. The "
    "random choice is a mean of 30 choices. Grey marks values within 1 % of the accuracy with all experts."
)
PUBLISHED = (
    "Six seeds. First case: pairs that pre-training separates. With one of eight experts left, the paper's "
    "criterion has 92.8 and 93.7 % (100 steps), and 94.5 and 94.0 % (400 steps). A random choice has 88.5, 89.6, "
    "90.4 and 91.6 %, and the norm of the router is as good as the paper's criterion. If at most half of the "
    "experts are pruned, no criterion differs from a random choice by more than two points. Importance is the "
    "worst criterion after 400 steps. Second case: pairs of one parity. The paper's criterion always stays within "
    "1.5 points of a random choice. With this loss, fine-tuning again need not help: after 100 steps it lowers the "
    "accuracy of the first pairs."
)
CLAIMS = ("criteria", "random-prune")
GROUPS = {"told apart by pre-training": ((8, 3), (4, 9), (2, 7)), "of one parity": ((4, 8), (3, 9), (1, 7))}
"""Pairs of digits, the first with y = +1."""
SHOWN = ("router_norm_change", "router_norm", "neuron_norm_change_mean", "importance", "random")
"""What is drawn of all criteria that are measured; the two others lie near these."""
PALETTE = (*COLOURS[:4], COLOURS[6])
BANDS = ("router_norm_change", "importance", "random")
RATE, KEPT, CHOICES = 0.05, 4, 30
"""eta_e and eta_r, in pre-training and fine-tuning; the tokens l an expert keeps; random choices in a mean."""


def pretrained(train: Any, rng: np.random.Generator, seed: int, steps: int) -> dict[str, np.ndarray]:
    """Experts that distinguish even from odd digits: SGD on the hinge, batches of 64."""
    from derivations.pruning import digits
    from odesim.request.case import Case
    from odesim.sgd import simulation

    experts = digits.experts(rng)
    tokens, labels = train.parity()
    given = {"data": "empirical", "l": KEPT, "eta_r": RATE, "loss": "hinge"}
    arrays = {**experts, "tokens": tokens, "y": labels}
    case = Case.build("pruning", given, initial=arrays, until=steps, save_points=2, seed=seed)
    run = simulation.simulate(simulation.Simulation.build(case, method="explicit", step_size=RATE, batch=64))
    return {"w": run["h"][0, -1], "W": run["u"][0, -1], "a": experts["a"]}


def tuned(
    experts: dict[str, np.ndarray], table: tuple[np.ndarray, np.ndarray], seed: int, steps: int, **given: Any
) -> list[Any]:
    """The trajectories of the stages tune, score, prune (nothing, unless rho is given) and post-tune on a table."""
    from odesim.flow import pipeline

    arrays = {**experts, "tokens": table[0], "y": table[1]}
    wanted = {"data": "empirical", "l": KEPT, "eta_r": RATE, "eta_e": RATE, "T": steps, "T_post": steps, "rho": 0.0}
    stages = "tune,score,prune,post-tune"
    return pipeline.run(pipeline.build("pruning", wanted | given, stages, initial=arrays, save_points=2, seed=seed))


def curves(runs: list[Any], table: tuple[np.ndarray, np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """Accuracy (2, criterion, kept) on a table, without and with post-pruning fine-tuning; random: a mean of choices.

    Under the linear loss experts are independent: fine-tuning what was kept is continuing all of them, and keeping
    some of the answers.
    """
    from derivations.pruning import digits, initial
    from derivations.pruning.parameters import Parameters
    from odesim.flow import pipeline

    tune, score, _, later = runs
    parameters = Parameters(data="empirical", l=KEPT, n=table[0].shape[1])
    ranks = {name: [np.asarray(score.summary[name])] for name in CRITERIA}
    ranks["random"] = [rng.random(len(score.summary["random"])) for _ in range(CHOICES)]
    found = []
    for run in (tune, later):
        end = initial.from_stage(parameters, pipeline.ending(run))
        found.append([np.mean([digits.accuracies(end, table, r) for r in ranks[name]], axis=0) for name in CRITERIA])
    return np.array(found)


def measure(seeds: int, pretraining: int, steps: list[int]) -> dict[str, list[Any]]:
    """Accuracies (steps, criterion, group, seed, kept), the mean over the pairs of a group: before and after."""
    from derivations.pruning import digits

    found = np.empty((seeds, len(steps), len(GROUPS), 2, len(CRITERIA), 8))
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        train, test = digits.images(rng)
        experts = pretrained(train, rng, seed, pretraining)
        for i, count in enumerate(steps):
            for j, pairs in enumerate(GROUPS.values()):
                each = [curves(tuned(experts, train.pair(*p), seed, count), test.pair(*p), rng) for p in pairs]
                found[seed, i, j] = np.mean(each, axis=0)
    before, after = found.transpose(3, 1, 4, 2, 0, 5)
    return {"criterion": list(CRITERIA), "steps": steps, "before": before.tolist(), "after": after.tolist()}


def needs(quick: bool = False) -> list[Table]:
    """Six seeds (a minute and a half)."""
    few = {"seeds": 2, "pretraining": 200, "steps": [10, 20]}
    return [Table("pruning-digits", measure, few if quick else {"seeds": 6, "pretraining": 1500, "steps": [100, 400]})]


def panel(axis: Any, values: np.ndarray, names: Sequence[str]) -> None:
    """The curves (criterion, seed, kept) of one group, with bands where they do not hide each other."""
    share = np.arange(values.shape[-1]) / values.shape[-1]
    full = float(values[0, :, 0].mean())
    axis.axhspan(full - 0.01, full, color="0.88", linewidth=0)
    for name, colour in zip(SHOWN, PALETTE, strict=True):
        own = values[names.index(name)]
        if name in BANDS:
            axis.fill_between(share, *np.quantile(own, [0.1, 0.9], axis=0), color=colour, alpha=0.15, linewidth=0)
        style = "s--" if name == "random" else "o-"
        axis.plot(share, own.mean(axis=0), style, ms=3.5, lw=1.3, color=colour, label=name)


def draw(stored: Sequence[Any]) -> Any:
    """A row for each group of pairs; for each number of steps a column without and one with further fine-tuning."""
    from matplotlib.figure import Figure

    table = stored[0]
    names = [str(name) for name in table["criterion"]]
    figure = Figure(figsize=(10.5, 5.4), layout="constrained")
    axes = figure.subplots(len(GROUPS), 2 * len(table["steps"]), sharex=True, sharey="row")
    for i, steps in enumerate(table["steps"]):
        for j, (when, title) in enumerate((("before", "pruned"), ("after", "and tuned again"))):
            for row, group in enumerate(GROUPS):
                axis = axes[row, 2 * i + j]
                panel(axis, np.asarray(table[when])[i, :, row], names)
                if row == 0:
                    axis.set_title(f"{int(steps)} steps, {title}", fontsize=9)
                else:
                    axis.set_xlabel("share of experts pruned")
                if i == j == 0:
                    axis.set_ylabel(f"accuracy on unseen images,\npairs {group}")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=len(SHOWN))
    return figure
