"""The finding that would refute a claim, as a sentence derived from its law and margin."""

import functools
from typing import Any

from derivations.laws.agreement import Agrees
from derivations.laws.bounds import Bounded, in_words
from derivations.laws.cases import Proven, Vanishes
from derivations.laws.means import Mean, Typical
from derivations.laws.parts import All, Premise
from derivations.laws.power import Power
from derivations.laws.shares import Probability
from derivations.laws.tools import ALARM
from derivations.laws.trends import Tends
from derivations.laws.values import Equals

SURE = f"{1 - ALARM:.0%} interval"


@functools.singledispatch
def refutation(law: Any) -> str:
    """Return the finding that would refute a claim of this law, as a clause that follows "refuted by".

    A law of another package may define this clause by a method `refutation()`.

    Example:
        >>> refutation(Equals(2.0, absolute=0.01, error=1e-9))
        'a value in any case that differs from 2 by more than 0.01 and its numerical error'
        >>> refutation(Power(0.5, over="d", margin=0.03))
        'an exponent of y in d whose 99% interval lies more than 0.03 from 0.5'
    """
    own = getattr(law, "refutation", None)
    return str(own()) if callable(own) else f"measurements that the law {type(law).__name__} rejects"


@refutation.register
def _(law: Equals) -> str:
    if law.error is not None:
        margin = f"{law.margin:.3g} and its numerical error"
        return f"a {law.meaning} in any case that differs from {law.value:.6g} by more than {margin}"
    return f"a typical {law.meaning} at any point whose {SURE} lies more than {law.margin:.3g} from {law.value:.6g}"


@refutation.register
def _(law: Power) -> str:
    side = {"at most": "above", "at least": "below"}.get(law.bound, "from")
    how = f"an exponent of {law.meaning} in {law.over}"
    how += f" whose {SURE} lies" if law.error is None else ", in the limit of the sizes,"
    found = f"{how} more than {law.margin:.3g} {side} {law.exponent:.4g}"
    return found if law.reached == 1.0 else f"{found}, or {law.meaning} reached in clearly fewer than {law.reached:.0%}"


@refutation.register
def _(law: Bounded) -> str:
    beyond = f" by more than {law.margin:.3g}" if law.margin else ""
    return f"one case in which the {law.meaning} violates {in_words(law.low, law.high)}{beyond}"


@refutation.register
def _(law: Mean) -> str:
    kind = "typical" if isinstance(law, Typical) else "mean"
    beyond = f" by more than {law.margin:.3g}" if law.margin else ""
    return f"a {kind} {law.meaning} at any point whose {SURE} violates {in_words(law.low, law.high)}{beyond}"


@refutation.register
def _(law: Probability) -> str:
    low = [f"below {law.low - law.visible:.3g}"] if law.low > 0 else []
    high = [f"above {law.high + law.visible:.3g}"] if law.high < 1 else []
    return f"a probability of the {law.meaning} whose {SURE} lies {' or '.join(low + high) or 'nowhere'}"


@refutation.register
def _(law: Tends) -> str:
    found = f"a share of the {law.meaning} at the largest {law.over} that is below {law.last:.3g}"
    return f"{found} and that does not rise with {law.over} ({SURE}s)"


@refutation.register
def _(law: Vanishes) -> str:
    above = 10 * law.tolerance if law.refuted_above is None else law.refuted_above
    return f"a {law.meaning} above {above:.3g} in any case"


@refutation.register
def _(law: Proven) -> str:
    return f"one case in which {law.meaning} fails"


@refutation.register
def _(law: Agrees) -> str:
    return f"a relative {law.meaning} in any entry whose {SURE} lies above {law.margin:.3g}"


@refutation.register
def _(law: Premise) -> str:
    return f"nothing: the premise is that {law.meaning} is at least {law.low:g}"


@refutation.register
def _(law: All) -> str:
    parts = [f"{name}: {refutation(part)}" for name, part in law.parts.items() if not isinstance(part, Premise)]
    return "any of these: " + "; ".join(parts) if len(parts) > 1 else "".join(parts)
