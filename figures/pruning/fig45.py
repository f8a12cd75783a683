"""Figures 4 and 5 on synthetic data: accuracy against the share of experts pruned, for all criteria."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from figures.pruning._shared import COLOURS, CRITERIA
from odesim.flow import solve
from odesim.show.figures import Table

CAPTION = (
    "Enumerated test accuracy as a function of the share of pruned experts in each sign group, 7 + 7 experts (2 "
    "important, 1 mis-signed, 1 weak, 3 neutral): mean over seeds, band 10 to 90 %. The left panel is without "
    "post-pruning fine-tuning, and the right panel with post-pruning fine-tuning for T'. Informed criteria keep "
    "full accuracy, but a random choice does not."
)
CLAIMS = ("thm-4.3", "thm-4.5", "criteria", "random-prune")


def measure(d: int, seeds: int) -> dict[str, list[Any]]:
    """The accuracy (seed, kept) of every criterion, without and with post-pruning fine-tuning."""
    from derivations.contract import load
    from derivations.pruning import criteria
    from derivations.pruning.parameters import Parameters
    from odesim.request.case import Case, find_system

    system = find_system("pruning")
    enter = load(system.stages[0].enter)
    before: dict[str, list[Any]] = {name: [] for name in CRITERIA}
    after: dict[str, list[Any]] = {name: [] for name in CRITERIA}
    for seed in range(seeds):
        p = Parameters(d=d)
        start = enter(p, None, np.random.default_rng(seed))
        case = Case.build(system, {"d": d, "tier": "flow"}, save_points=2)
        run = solve.solve(case, initial=start)
        end = _ending(p, run)
        post_case = Case.build(system, {"d": d, "tier": "flow"}, save_points=2, until=p.post_horizon)
        late = _ending(p, solve.solve(post_case, initial=end))
        # Experts are independent: fine-tuning what was kept is continuing its own trajectory.
        scores = criteria.scores(end, np.random.default_rng(seed))
        answers, late_answers = criteria.pooled(end), criteria.pooled(late)
        a = np.asarray(end.constants["a"])
        for name in CRITERIA:
            kept = [criteria.keep(a, scores[name], 1 - count / 7) for count in range(1, 8)]
            for answer, into in ((answers, before), (late_answers, after)):
                into[name].append([1 - criteria.error_of(answer[0], a, *answer[3:], k)[0] for k in kept])
    return {"criterion": list(CRITERIA), "before": list(before.values()), "after": list(after.values())}


def _ending(p: Any, run: Any) -> Any:
    """The condition at the end of a run."""
    from derivations.pruning import initial

    arrays = {name: v.values[-1] for name, v in run.state.items() if v.dims[0] == "time"}
    return initial.from_stage(p, arrays | {name: v.values for name, v in run.extras.items()})


def needs(quick: bool = False) -> list[Table]:
    """Ten seeds (a minute)."""
    return [Table("pruning-fig45", measure, {"d": 30, "seeds": 2} if quick else {"d": 100, "seeds": 10})]


def draw(stored: Sequence[Any]) -> Any:
    """Two panels of curves with bands."""
    from matplotlib.figure import Figure

    table = stored[0]
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    share = 1 - np.arange(1, 8) / 7
    for axis, name, title in ((axes[0], "before", "without"), (axes[1], "after", "with")):
        curves = {str(criterion): np.asarray(table[name][i]) for i, criterion in enumerate(table["criterion"])}
        for k, (values, names) in enumerate(together(curves)):
            low, high = np.quantile(values, [0.1, 0.9], axis=0)
            axis.fill_between(share, low, high, color=COLOURS[k], alpha=0.15, linewidth=0)
            axis.plot(share, values.mean(axis=0), ("o-", "s--", "^:", "D-.")[k % 4], ms=4, color=COLOURS[k],
                      label="\n".join(word.replace("_", " ") for word in names))  # fmt: skip
        axis.legend(loc="lower left", fontsize=7)
        axis.set_xlabel("share of experts pruned")
        axis.set_title(f"{title} post-pruning fine-tuning")
    axes[0].set_ylabel("test accuracy")
    axes[0].set_ylim(bottom=min(0.45, axes[0].get_ylim()[0]))
    return figure


def together(curves: Mapping[str, np.ndarray]) -> list[tuple[np.ndarray, list[str]]]:
    """Criteria whose accuracies nowhere differ by more than a thousandth, as one curve with all their names."""
    groups: list[tuple[np.ndarray, list[str]]] = []
    for name, values in curves.items():
        same = next((names for first, names in groups if np.abs(first - values).max() <= 1e-3), None)
        if same is None:
            groups.append((values, [name]))
        else:
            same.append(name)
    return groups
