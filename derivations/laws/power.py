"""Powers: exact ones by the limit of their local exponents, sampled ones by one slope for each run."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from derivations import intervals, scaling
from derivations.claim import HOLDS, Answer, Judgement, Samples, Sensitivity
from derivations.laws.tools import (
    ALARM,
    DOUBT,
    LEAST_RUNS,
    LEAST_SIZES,
    confirming,
    decided,
    failed,
    open_because,
    others,
    refuting,
    values,
    within,
)

USUAL_SIZES, USUAL_RANGE = 5, 100.0
"""A claim with fewer sizes, or over less than two decades, needs a reason (`short`)."""

LOGARITHMS: Sequence[scaling.Form] = (
    scaling.Form("sqrt(d) log d", logarithm=1.0, exponent=0.5),
    scaling.Form("sqrt(d log d)", logarithm=0.5, exponent=0.5),
    scaling.Form("sqrt(d) / log d", logarithm=-1.0, exponent=0.5),
)
"""Rivals of a square root that a log-log slope cannot exclude."""


@dataclasses.dataclass(frozen=True)
class Found:
    """An exponent with its confirming and its refuting interval, and any objections to it."""

    value: float
    interval: tuple[float, float]
    wide: tuple[float, float]
    words: str
    doubt: str = ""


@dataclasses.dataclass(frozen=True)
class Power:
    """Law: y ~ x^exponent in the coordinate `over`, with the exponent within `margin`, and no rival fits.

    `error=None`: sampled; one least-squares slope for every seed measured at all sizes (at least six seeds, four
    sizes). The interval contains that of the typical slope, and that of the slope of the mean curve by its misfit,
    which includes errors common to all seeds of a size. A significant change of slope beyond the margin leaves a
    two-sided law open. A bound is then judged by the upper half of the sizes, if the curvature is significant.

    `error=e`: deterministic with relative error e; the limit of the local exponents decides, extrapolated with the
    `correction` of the theory ("log": 1/log x, s: x^-s) towards large coordinates, or towards small ones with
    `toward="small"` (1/x then replaces x).

    `bound` "at most" or "at least": confirmed if the exponent is attained within the margin, consistent if it is
    clearly on the allowed side.

    Rivals of every two-sided law are x^p (log x)^q, q = -1, -1/2, 1/2, 1, and the nearest simple fractions; `rivals`
    adds to them. After division by its logarithm, the data reject a rival if their exponent excludes that of the rival.
    A rival that is not rejected leaves the claim open. `no_log_rival` is a reason against logarithms (an expansion in
    powers, the variance of independent terms), and removes these rivals. Fewer than five sizes, or less than two
    decades, leave the claim open too unless `short` gives a reason.

    `shift` is subtracted from y first (a known finite-size lag). An infinite measurement means that the event did not
    happen: the law is claimed with a probability of at least `reached`.

    Example:
        >>> exact = [({"d": 10**k}, 0, 3.0 * 10 ** (k / 2)) for k in range(4, 9)]
        >>> Power(0.5, error=1e-9).judge(exact).answer
        'confirmed'
        >>> Power(1.0, error=1e-9).judge(exact).answer
        'refuted'
        >>> Power(1.0, bound="at most", error=1e-9).judge(exact).answer
        'consistent'
    """

    exponent: float
    over: str = "d"
    margin: float = 0.03
    rivals: tuple[scaling.Form, ...] = ()
    bound: str = ""
    shift: float = 0.0
    reached: float = 1.0
    meaning: str = "y"
    error: float | None = None
    correction: str | float = ""
    toward: str = "large"
    because: str = ""
    no_log_rival: str = ""
    short: str = ""

    def judge(self, samples: Samples, looks: int = 1) -> Judgement:
        """Judge first if enough runs reach the level, then the exponent against its claim, then the rivals."""
        if (missing := failed(samples, self.meaning)) is not None:
            return missing
        count = int(np.isfinite(values(samples)).sum())
        unreached = f"{self.meaning} is not reached in {len(samples) - count} of {len(samples)} runs"
        if count < len(samples) and intervals.share(count, len(samples), 1 - ALARM)[1] < self.reached:
            reason = f"{unreached}, claimed for {self.reached:.0%}"
            return Judgement("refuted", self.exponent, None, None, reason, bound=self.bound)
        if count < len(samples) and intervals.share(count, len(samples))[0] < self.reached:
            return open_because(f"{unreached}, claimed for {self.reached:.0%}", self.exponent)
        x, runs, y = scaling.table(samples, self.over)
        y = y - self.shift
        if (reason := self._unfit(x, runs, y)) is not None:
            return open_because(reason, self.exponent)
        found = self._exponent(x, np.log(y), 1 / looks)
        judgement = self._judged(found, x, self._rejected(x, np.log(y)))
        if count < len(samples):
            judgement = dataclasses.replace(judgement, reason=f"{judgement.reason}; {unreached}")
        return judgement

    def _unfit(self, x: np.ndarray, runs: np.ndarray, y: np.ndarray) -> str | None:
        if x.size < LEAST_SIZES:
            return f"{self.meaning}: {x.size} values of {self.over}, of which at least {LEAST_SIZES} are needed"
        least = 1 if self.error is not None else LEAST_RUNS
        if runs.size < least:
            return f"{self.meaning}: {runs.size} runs measured at every size, of which at least {least} are needed"
        if (y <= 0).any():
            return f"{self.meaning} is not positive in some cases, so it has no exponent"
        return None

    def _exponent(self, x: np.ndarray, log_y: np.ndarray, share: float) -> Found:
        """The exponent of the data, exact or sampled; `share` is its part of the error probability."""
        if self.error is not None:
            return self._limit(x, log_y, self.error)
        slopes, half = _slopes(x, log_y), x.size // 2
        lower, upper = _slopes(x[: half + 1], log_y[:, : half + 1]), _slopes(x[-half - 1 :], log_y[:, -half - 1 :])
        low, high = intervals.mean(upper - lower, 1 - ALARM)
        moves = (low > 0 or high < 0) and abs(float(np.mean(upper - lower))) > self.margin
        looks = round(1 / share)
        words = f" over {x.size} values of {self.over}, {len(slopes)} runs ({others(len(slopes))})"
        if moves and self.bound and _bends(x, log_y):
            words += " (upper half of the sizes, as the slope still changes)"
            return Found(float(upper.mean()), confirming(upper, looks), refuting(upper, looks), words)
        across = _across(x, log_y)
        drift = f"the slope changes from {lower.mean():.3f} to {upper.mean():.3f}" if moves else ""
        narrow, wide = (intervals.union(found(slopes, looks), across) for found in (confirming, refuting))
        return Found(float(slopes.mean()), narrow, wide, words, drift)

    def _limit(self, x: np.ndarray, log_y: np.ndarray, error: float) -> Found:
        """The limit of the local exponents of exact data; several draws at a size are averaged in logarithms."""
        own, x, local = self._local(x, log_y, error)
        found = scaling.limit(x, local, own, self.correction)
        ends = (found.value - found.error, found.value + found.error)
        away = np.abs(local - self.exponent)
        doubt = ""
        if not self.bound and away[-1] > max(away[-2], self.margin) + own:  # a bound may be exceeded
            doubt = f"local exponents move away from the claim, {local[-2]:.4f} to {local[-1]:.4f}"
        elif not self.bound and away[-1] > 2 * self.margin:
            doubt = f"the last local exponent {local[-1]:.4f} is still far"
        words = f" as limit of {local.size} local exponents {local[0]:.4f} to {local[-1]:.4f}"
        return Found(found.value, ends, ends, words, doubt)

    def _local(self, x: np.ndarray, log_y: np.ndarray, error: float) -> tuple[float, np.ndarray, np.ndarray]:
        """(error of a local exponent, sizes that grow towards the limit, local exponents in that order)."""
        own = 2 * error / float(np.diff(np.log(x)).min())
        local = scaling.local_exponents(x, log_y.mean(axis=0))
        return (own, x, local) if self.toward == "large" else (own, 1 / x[::-1], local[::-1])

    def _judged(self, found: Found, x: np.ndarray, rejected: tuple[str, ...]) -> Judgement:
        low = -np.inf if self.bound == "at most" else self.exponent
        target = (low, np.inf if self.bound == "at least" else self.exponent)
        answer: Answer = "inconclusive"
        if decided(*found.interval, target, self.margin) == "confirmed":
            answer = "confirmed"
        elif decided(*found.wide, target, self.margin) == "refuted":
            answer = "refuted"
        slack = None
        if self.bound and answer == "confirmed":
            slack = self.exponent - found.interval[1] if self.bound == "at most" else found.interval[0] - self.exponent
            attained = decided(*found.interval, (self.exponent, self.exponent), self.margin) == "confirmed"
            answer = "confirmed" if attained else "consistent"
        known = self._rivals()
        standing = tuple(rival.name for rival in known if rival.name not in rejected)
        lacking = self._lacking(x)
        if (answer == "confirmed" and (found.doubt or standing)) or (answer in HOLDS and lacking):
            answer = "inconclusive"
        if answer == "refuted" and self.error is None and found.doubt:
            answer = "inconclusive"
        relation = {"at most": "<= ", "at least": ">= "}.get(self.bound, "")
        reason = f"{self.meaning} ~ {self.over}^{found.value:.4f} [{found.interval[0]:.4f}, {found.interval[1]:.4f}]"
        reason += f"{found.words}, predicted exponent {relation}{self.exponent:g} {within(self.margin, self.because)}"
        reason += f"; {found.doubt}" if found.doubt else ""
        reason += f"; rivals rejected: {', '.join(rejected) or 'none'}" if known else ""
        reason += f"; not rejected: {', '.join(standing)}" if standing else ""
        reason += f" (no logarithm: {self.no_log_rival})" if self.no_log_rival and known else ""
        reason += f"; {lacking}" if lacking else f" ({self.short})" if self.short else ""
        limits = {"margin": self.margin, "slack": slack, "bound": self.bound}
        return Judgement(answer, self.exponent, found.value, found.interval, reason, rejected, **limits)

    def _lacking(self, x: np.ndarray) -> str:
        """Return the deficiency of the sizes, if there is no reason for it."""
        if self.short or (x.size >= USUAL_SIZES and x[-1] / x[0] >= USUAL_RANGE * (1 - 1e-9)):
            return ""
        return f"{x.size} sizes over {np.log10(x[-1] / x[0]):.2g} decades, fewer than 5 over 2, without a reason"

    def _rivals(self) -> tuple[scaling.Form, ...]:
        """Return the rivals of a two-sided law: those of the claim, those with a logarithm and the nearest
        fractions.
        """
        return (
            self.rivals if self.bound else self.rivals + scaling.rivals(self.exponent, self.over, not self.no_log_rival)
        )

    def _rejected(self, x: np.ndarray, log_y: np.ndarray) -> tuple[str, ...]:
        """The rivals that the data reject: after division by its logarithm the data exclude its exponent."""
        return tuple(rival.name for rival in self._rivals() if self._excludes(rival, x, rival.remove(x, log_y)))

    def _excludes(self, rival: scaling.Form, x: np.ndarray, log_y: np.ndarray) -> bool:
        if rival.exponent is None:
            raise ValueError(f"the rival {rival.name!r} needs a fixed exponent")
        if self.error is not None:
            own, x, local = self._local(x, log_y, self.error)
            found = scaling.limit(x, local, own, self.correction or 1.0)
            last = abs(local[-1] - rival.exponent)
            return bool(abs(found.value - rival.exponent) > found.error and last > 3 * own + 1e-9)
        low, high = intervals.union(confirming(_slopes(x, log_y)), _across(x, log_y))
        return bool(rival.exponent < low or rival.exponent > high)

    def sensitivity(self, samples: Samples, looks: int = 1) -> Sequence[Sensitivity]:
        """The margin and half of the interval of the exponent, beyond the claimed exponent."""
        x, _, y = scaling.table(samples, self.over)
        found = self._exponent(x, np.log(y - self.shift), 1 / looks)
        size = self.margin + (found.interval[1] - found.interval[0]) / 2
        signs = {"at most": (1,), "at least": (-1,)}.get(self.bound, (-1, 1))
        either = " or ".join(f"{self.exponent + sign * size:.3g}" for sign in signs)
        return (Sensitivity("exponent", size, f"an exponent of {either} would have been detected"),)


def _slopes(x: np.ndarray, log_y: np.ndarray) -> np.ndarray:
    """The least-squares slope of every run (runs,)."""
    u = np.log(x) - np.log(x).mean()
    return log_y @ u / (u @ u)


def _across(x: np.ndarray, log_y: np.ndarray) -> intervals.Interval:
    """Return the 95 % interval of the slope of the mean curve, from its misfit (sizes - 2 degrees of freedom)."""
    from scipy import special

    curve, u = log_y.mean(axis=0), np.log(x) - np.log(x).mean()
    slope = float(curve @ u / (u @ u))
    misfit = curve - curve.mean() - slope * u
    free = x.size - 2
    half = float(special.stdtrit(free, 1 - DOUBT / 2) * np.sqrt(misfit @ misfit / free / (u @ u)))
    return slope - half, slope + half


def _bends(x: np.ndarray, log_y: np.ndarray) -> bool:
    """Return True if the curvature of the mean curve is significant relative to its misfit (t test at 1 %)."""
    from scipy import special

    u, curve = np.log(x) - np.log(x).mean(), log_y.mean(axis=0)
    basis = np.stack([np.ones_like(u), u, u**2], axis=1)
    coefficients = np.linalg.lstsq(basis, curve, rcond=None)[0]
    misfit, free = curve - basis @ coefficients, x.size - 3
    error = float(np.sqrt(misfit @ misfit / free * np.linalg.inv(basis.T @ basis)[2, 2]))
    return bool(abs(coefficients[2]) > special.stdtrit(free, 1 - ALARM / 2) * error)
