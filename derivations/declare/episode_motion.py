"""Motion of one student by a rule with a reward, as definitions of a statement (`episode_rules`).

With i the student, j the teacher, k the number of successes among the other samples of an episode,

    odds_i = E[s],   chance_ik = binomial_k odds_i^k (1 - odds_i)^(T-1-k)
    right_m = sum_k chance_ik g_m(R(k + 1)),   wrong_m = sum_k chance_ik g_m(R(k))

C_ii and C_ij are sums over m of right_m times means with s F_m, and wrong_m times means with (1 - s) F_m; E_ii is a sum
over pairs of m, with the means of g_m g_n.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from derivations.declare import episodes, schedules, symbols
from derivations.declare.algebra import Algebra, Vector
from derivations.declare.gates import Reward, Signed
from derivations.declare.unit_kernels import Mean
from derivations.statement import Base, Definition, Indicator, Named, sp

if TYPE_CHECKING:
    from derivations.declare.motion import Motion

COUNT = sp.Symbol(episodes.PARAMETER, integer=True)
HITS = sp.Idx("hits", COUNT)
"""The number of successes among the other samples of an episode."""
SIDES = ("right", "wrong")


def step(declared: Any) -> Any:
    """The samples of an episode, as a factor of the batch."""
    return COUNT if declared.episode is not None else sp.Integer(1)


def reward(algebra: Algebra, vector: Vector) -> Reward | None:
    """Return the parts of the rule of some vectors if it uses the reward; otherwise None."""
    rule = algebra.shapes[vector.group].rule(vector.slot) if algebra.moves(vector) else None
    return rule.rewarded if rule is not None else None


def constants(declared: Any, closed: bool) -> Iterator[Named]:
    """Return the constants of episodes; for a `closed` motion also the binomial coefficients and rewards."""
    if declared.episode is None:
        return
    yield Named(COUNT, "samples of an episode")
    if closed:
        yield Named(Base("binomial")[HITS], "binomial coefficients of the other samples of an episode")
        yield Named(Base("rewards_right")[HITS], "reward of a success, by the successes of the other samples")
        yield Named(Base("rewards_wrong")[HITS], "reward of a failure, by the successes of the other samples")


def numbers(parameters: Any, closed: bool) -> dict[str, Any]:
    """The values of `constants`."""
    episode = episodes.in_force(parameters).episode
    if episode is None:
        return {}
    if not closed:
        return {episodes.PARAMETER: episode.samples}
    all_rewards = episodes.rewards(episode, schedules.shared(parameters))
    binomial: dict[str, Any] = {"binomial": episodes.ways(episode.samples - 1)}
    return {
        episodes.PARAMETER: episode.samples,
        **binomial,
        "rewards_right": all_rewards[1:],
        "rewards_wrong": all_rewards[:-1],
    }


def definitions(motion: "Motion", vector: Vector, parts: Reward) -> Iterator[Definition]:
    """Yield the probability of a success, means of functions of the reward, and means over student and teacher."""
    i = motion.algebra.index("i", vector.group)
    signed = {"odds": parts.odds, **_signed(parts)}
    student_means, pairs = [], []
    for name, part in signed.items():
        student_means += [Mean(f"alone_{name}", (part.value,)), Mean(f"bend_alone_{name}", (part.slope,))]
        pairs += _across(motion, name, part)
    needed_names = _needed(motion, parts)
    yield from motion.kernels.definitions(
        (vector.group,), (i,), [m for m in student_means if m.name in needed_names], "means of the student"
    )
    h = _teacher(motion.algebra)
    j = motion.algebra.index("j", h)
    pair_means = [mean for mean in pairs if mean.name in needed_names]
    yield from motion.kernels.definitions((vector.group, h), (i, j), pair_means, "means with the sign of the teacher")
    odds = Base("odds")[i]
    yield Definition((odds,), _whole(motion, "odds", i), "probability of a success")
    # The other samples of an episode are independent.
    chance = Base("binomial")[HITS] * odds**HITS * (1 - odds) ** (COUNT - 1 - HITS)
    yield Definition((Base("chance")[i, HITS],), chance, "probability of a number of successes among the other samples")
    for number, gain in enumerate(_gains(parts, motion.second)):
        for side in SIDES:
            value = sp.Sum(Base("chance")[i, HITS] * _at(gain, Base(f"rewards_{side}")[HITS]), HITS)
            text = f"mean of {symbols.plain(gain)} of a {'success' if side == 'right' else 'failure'}"
            yield Definition((Base(f"{side}_{number}")[i],), value, text)


def _gains(parts: Reward, second: bool) -> list[Any]:
    """The functions of the reward, and with `second` their products, without repetition and the number 1."""
    products = [parts.gains[m] * parts.gains[n] for m, n in parts.pairs] if second else []
    return [gain for gain in dict.fromkeys((*parts.gains, *products)) if gain != 1]


def _gain(parts: Reward, side: str, gain: Any, i: Any) -> Any:
    """The mean of a function of the reward of a success, or of a failure."""
    if gain == 1:
        return sp.Integer(1)
    all_gains = _gains(parts, True)  # those of the drift come first
    return Base(f"{side}_{all_gains.index(gain)}")[i]


def _at(gain: Any, value: Any) -> Any:
    """Return a function of the reward at a value, in the functions of a statement."""
    expression = gain.xreplace({sp.Symbol(episodes.REWARD, real=True): value})
    expression = expression.xreplace(
        {s: sp.Symbol(s.name) for s in expression.free_symbols if s.is_real and isinstance(s, sp.Symbol)}
    )
    return expression.replace(symbols.own()["step"], lambda x: Indicator(sp.Gt(x, 0)))


def _signed(parts: Reward) -> dict[str, Signed]:
    """All functions of a sample, by the name of their means."""
    functions = {}
    for side, of_one, of_two in (
        ("right", parts.right, parts.squares_right),
        ("wrong", parts.wrong, parts.squares_wrong),
    ):
        functions |= {f"{side}_{m}": function for m, function in enumerate(of_one)}
        functions |= {f"{side}_{m}_{n}": function for (m, n), function in zip(parts.pairs, of_two, strict=True)}
    return functions


def _needed(motion: "Motion", parts: Reward) -> set[str]:
    """Return the names of the necessary means: slopes for the drift, values for squares."""
    names = {"alone_odds", "pair_odds"}
    for side in SIDES:
        for m in range(len(parts.gains)):
            names |= {f"{word}_{side}_{m}" for word in ("bend_alone", "bend_pair", "bend_teacher")}
        for m, n in parts.pairs if motion.second else ():
            names |= {f"{word}_{side}_{m}_{n}" for word in ("alone", "pair")}
    return names


def _across(motion: "Motion", name: str, part: Signed) -> list[Mean]:
    """The means of a function with the sign of the teacher: itself, its slope, and with the slope of that sign."""
    sign, slope = motion.algebra.shapes[_teacher(motion.algebra)].sign
    return [
        Mean(f"pair_{name}", (part.turned, sign)),
        Mean(f"bend_pair_{name}", (part.turned_slope, sign)),
        Mean(f"bend_teacher_{name}", (part.turned, slope)),
    ]


def _teacher(algebra: Algebra) -> int:
    return len(algebra.declared.students)


def _whole(motion: "Motion", name: str, i: Any, word: str = "") -> Any:
    """E[P + Q sigma*], or with the word "bend_" the mean of its slope in the student's field."""
    j = motion.algebra.index("j", _teacher(motion.algebra))
    pair = motion.entry(f"{word}pair_{name}", i, j)
    return motion.entry(f"{word}alone_{name}", i) + (sp.Sum(pair, j) if pair != 0 else 0)


def gradient(motion: "Motion", first: Vector, second: Vector, parts: Reward) -> Any:
    """C_ij of the student by a rule with a reward."""
    algebra = motion.algebra
    i, j, total = algebra.index("i", first.group), algebra.index("j", second.group), sp.Integer(0)
    for side in SIDES:
        for m in range(len(parts.gains)):
            name = f"{side}_{m}"
            if second == first:
                mean = sp.Integer(0) if algebra.radial else _whole(motion, name, i, "bend_")
            else:
                mean = motion.entry(f"bend_teacher_{name}", i, j)
            total += _gain(parts, side, parts.gains[m], i) * mean
    return sp.KroneckerDelta(i, j) * total if second == first and total != 0 else total


def square(motion: "Motion", vector: Vector, parts: Reward) -> Any:
    """E[c_i c_i] of the student by a rule with a reward."""
    i, total = motion.algebra.index("i", vector.group), sp.Integer(0)
    for m, n in parts.pairs:
        for side in SIDES:
            twice = 1 if m == n else 2
            total += (
                twice * _gain(parts, side, parts.gains[m] * parts.gains[n], i) * _whole(motion, f"{side}_{m}_{n}", i)
            )
    return total
