"""Episodes: [training] episode, in which a reward comes after T samples, and `R` in rules.

An episode has T independent samples, of which n are a success; every rule may use R = reward(n). With s the success of
a sample, 0 or 1, and p = E[s], the other T - 1 samples have K ~ Binomial(T - 1, p) successes, so that

    E[c_a z_b] = E[s E_K[c_a(R = reward(K + 1))] z_b] + E[(1 - s) E_K[c_a(R = reward(K))] z_b]

and E[c_a c_b] likewise. A step is the mean over the episodes of a batch and their samples: the term of second order has
1/(T B), since inputs of different samples are orthogonal in the online limit. Source: Patel, Lee, Mannelli, Goldt &
Saxe 2023, https://arxiv.org/abs/2306.10404 (the RL perceptron).
"""

import dataclasses
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from derivations.contract import UsageError
from derivations.declare import fields, schedules
from derivations.declare.grammar import OF_SAMPLES, Tree, number

KEYS = ("samples", "success", "reward")
MOST_SAMPLES = 100
"""Largest number of samples of an episode, because means are sums over the number of successes."""
REWARD = "R"
"""Name of the reward of an episode in rules."""
COUNT, SAMPLES = "n", "T"
"""Names of the number of successes and of samples in a reward."""
PARAMETER = "episode_samples"
TAKEN = (REWARD, COUNT, SAMPLES, "odds", "chance", "hits", "binomial", "rewards_right", "rewards_wrong")
"""Reserved names in rewards and in the equations of episodes."""
EXAMPLE = "episode = {samples = 8, success = 'step(f*y)', reward = 'step(n - T + 0.5)'}"


@dataclasses.dataclass(frozen=True)
class Episode:
    """Declared episode: its number of samples, the condition of a success, and the reward of all samples."""

    samples: int
    success: Tree
    reward: Tree
    success_text: str
    reward_text: str


def episode(training: Mapping[str, Any], numbers: Iterable[Any]) -> Episode | None:
    """Return the episode in [training]; None without the key.

    `numbers` are the user's. Raises `fields.Mistake` for an invalid episode.
    """
    if "episode" not in training:
        return None
    table, place = training["episode"], "training.episode"
    if not isinstance(table, Mapping):
        message = f"episode is a table such as {EXAMPLE}, but {fields.shown(table)} was given"
        raise fields.Mistake(message, "training", "episode")
    fields.require_known(table, KEYS, place)
    for key in KEYS:
        if key not in table:
            raise fields.Mistake(f"an episode lacks its {key}: write {EXAMPLE}", "training", "episode")
        if key != "samples" and not isinstance(table[key], str):
            message = f"{key} of an episode is an expression, but {fields.shown(table[key])} was given"
            raise fields.Mistake(message, place, key)
    samples, shared = fields.whole(table, "samples", place, 1, MOST_SAMPLES), []
    for declared_number in numbers:
        if declared_number.name in TAKEN or re.match("(right|wrong|alone|pair|bend)_", declared_number.name):
            message = (
                f"{declared_number.name} is both your parameter and a reserved name of episodes: rename your parameter"
            )
            raise fields.Mistake(message, "training", "episode")
        shared += [] if declared_number.per_unit else [declared_number.name]
    success = fields.expression(table["success"], place, "success", ("f", "y", *shared))
    _require_success(success, table["success"], place)
    reward = fields.formula(table["reward"], place, "reward", (COUNT, SAMPLES, *shared))
    if COUNT not in reward.names():
        message = f"the reward {table['reward']!r} does not depend on n, the number of successes"
        raise fields.Mistake(message, place, "reward")
    return Episode(samples, success, reward, table["success"].strip(), table["reward"].strip())


def _require_success(tree: Tree, text: str, place: str) -> None:
    """Raise an error for a success that is not a product of steps, or does not depend on the answers."""
    factors = [tree]
    while any(factor.kind == "*" for factor in factors):
        factors = [part for factor in factors for part in (factor.parts if factor.kind == "*" else (factor,))]
    if any(factor.kind != "call" or factor.word != "step" for factor in factors):
        raise fields.Mistake("a success must be 0 or 1: write step(..), or a product of such factors", place, "success")
    wrong = [call.word for call in tree.walk() if call.kind == "call" and call.word not in OF_SAMPLES]
    if wrong:
        message = f"{wrong[0]} has no meaning in a success; its functions are {', '.join(OF_SAMPLES)}"
        raise fields.Mistake(message, place, "success")
    if not {"f", "y"} & set(tree.names()):
        raise fields.Mistake(f"the success {text!r} depends neither on f nor on y", place, "success")


def reads(declared: Any) -> bool:
    """Return True if a rule in use contains the reward."""
    return declared.episode is not None and any(REWARD in rule.tree.names() for rule in declared.rules)


def require(declared: Any) -> None:
    """Raise `fields.Mistake` for an episode together with incompatible features, or without effect."""
    if declared.episode is None:
        return

    def refuse(feature: str, cause: str) -> None:
        raise fields.Mistake(f"episode and {feature} cannot be combined: {cause}", "training", "episode")

    if declared.several:
        refuse("several heads", "rules are for networks with one answer")
    if declared.predicted:
        refuse("prediction", "rules are for answers that are sums of groups")
    if declared.look is not None:
        refuse("look", "the reward is known only after all samples of an episode, but a virtual step uses one sample")
    if any("gnorm" in rule.tree.names() for rule in declared.rules):
        refuse("gnorm", "gnorm needs the length of each sample, which SGD draws before the reward is known")


def require_effect(declared: Any) -> None:
    """Raise `fields.Mistake` if no rule of any stage contains the reward."""
    if declared.episode is not None and not any(reads(stage) for stage in declared.each_stage):
        message = f"nothing depends on the reward, because no rule contains {REWARD}; leave out episode"
        raise fields.Mistake(message, "training", "episode")


def add_number(declared: Any, add_parameter: Any) -> None:
    """Add the number of samples of the declared episode to the parameters."""
    if declared.episode is not None:
        text = "samples T of an episode, after which its reward comes"
        add_parameter(PARAMETER, int, declared.episode.samples, text, minimum=1, maximum=MOST_SAMPLES)


def in_force(parameters: Any) -> Any:
    """Return the declaration with the number of samples of an episode in the parameters."""
    declared = parameters.declaration
    if declared.episode is None or declared.episode.samples == parameters.episode_samples:
        return declared
    current_episode = dataclasses.replace(declared.episode, samples=parameters.episode_samples)
    return dataclasses.replace(declared, episode=current_episode)


def samples(parameters: Any) -> int:
    """Return the number T of samples of an episode; 1 for a model without episodes."""
    return 1 if parameters.declaration.episode is None else int(getattr(parameters, PARAMETER))


def rewards(declared_episode: Episode, namespace: Mapping[str, float]) -> np.ndarray:
    """The rewards (T + 1,) of 0 to T successes; `namespace` are the shared numbers by name."""
    counts = range(declared_episode.samples + 1)
    return np.array(
        [
            number(declared_episode.reward, {**namespace, COUNT: float(n), SAMPLES: float(declared_episode.samples)})
            for n in counts
        ]
    )


def check(parameters: Any) -> None:
    """Raise `UsageError` for a reward that is not a number for some count of successes."""
    declared = in_force(parameters)
    if declared.episode is None:
        return
    namespace = schedules.shared(parameters)
    for n in range(declared.episode.samples + 1):
        try:
            value = number(
                declared.episode.reward, {**namespace, COUNT: float(n), SAMPLES: float(declared.episode.samples)}
            )
        except (UsageError, ArithmeticError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise UsageError(f"the reward {declared.episode.reward_text!r} is not a number at n = {n}")


def convention(parameters: Any) -> dict[str, str]:
    """Return the convention of episodes that a run states."""
    declared_episode: Episode | None = parameters.declaration.episode
    if declared_episode is None:
        return {}
    text = f"{samples(parameters)} samples, success {declared_episode.success_text}, R = {declared_episode.reward_text}"
    return {"episode": f"{text}; a step is the mean over samples and episodes"}


def reason(declared: Any) -> str:
    """Return the reason why a rule with a reward has no exact means over a grid; "" without an episode."""
    return "" if declared.episode is None else "the success of a sample is no polynomial"


# -- means over the other samples of an episode


def chances(xp: Any, count: int, p: Any) -> Any:
    """Return the probabilities (count + 1,) of 0 to `count` successes of independent samples that succeed with p.

    >>> chances(np, 2, 0.5).tolist()
    [0.25, 0.5, 0.25]
    """
    # By products instead of powers: automatic differentiation of p^0 at p = 0 gives NaN.
    ones = xp.ones(1)
    up = xp.concatenate([ones, xp.cumprod(ones * p + xp.zeros(count))])
    down = xp.concatenate([ones, xp.cumprod(1 - ones * p + xp.zeros(count))])
    return ways(count) * up * down[::-1]


def ways(count: int) -> np.ndarray:
    """The binomial coefficients (count + 1,) of `count`."""
    return np.array([float(math.comb(count, k)) for k in range(count + 1)])
