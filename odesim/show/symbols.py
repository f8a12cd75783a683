"""Symbols of components, written in a line of text, as mathematics for pictures."""

import re
import textwrap
from collections.abc import Mapping

GREEK = (
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi",
    "pi", "rho", "sigma", "tau", "phi", "chi", "psi", "omega", "Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma",
    "Phi", "Psi", "Omega",
)  # fmt: skip


def split_meaning(meaning: str) -> tuple[str, str]:
    """Return the words of a component's meaning, and its symbol, which is in parentheses at the end.

    Example:
        >>> split_meaning("expert alignment w_i . w*_j (gamma^(2)_ij)")
        ('expert alignment w_i . w*_j', 'gamma^(2)_ij')
        >>> split_meaning("population loss L")
        ('population loss L', '')
    """
    if not meaning.endswith(")"):
        return meaning, ""
    depth = 0
    for place in range(len(meaning) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(meaning[place], 0)
        if depth == 0:
            return meaning[:place].strip(), meaning[place + 1 : -1]
    return meaning, ""


def as_mathematics(symbol: str) -> str:
    r"""Return a symbol as mathematics of matplotlib; "" for an empty one.

    Example:
        >>> as_mathematics("gamma^(2)_ij"), as_mathematics("kappa_{m,j,c}")
        ('$\\gamma^{(2)}_{ij}$', '$\\kappa_{m,j,c}$')
        >>> as_mathematics("<w_mj, v_k>"), as_mathematics("w . w*_c"), as_mathematics("one_M_ww")
        ('$\\langle w_{mj}, v_{k}\\rangle$', '$w \\cdot w^{*}_{c}$', '$\\mathrm{one}\\ M_{ww}$')
    """
    if not symbol:
        return ""
    if re.fullmatch(r"[A-Za-z]+_[A-Z]\w*", symbol) and symbol.count("_") > 1:  # a group's name before its matrix
        group, _, rest = symbol.partition("_")
        return rf"$\mathrm{{{group}}}\ {as_mathematics(rest)[1:]}"
    text = re.sub(r"\^\(([^)]*)\)", r"^{(\1)}", symbol)
    text = re.sub(r"_(?!\{)(\w+)", lambda found: f"_{{{_subscript(found[1])}}}", text)
    text = re.sub(r"(?<=\w)\*", "^{*}", text)
    text = text.replace("<", r"\langle ", 1).replace(">", r"\rangle", 1) if "<" in text and ">" in text else text
    text = text.replace(" . ", r" \cdot ")
    text = re.sub(rf"(?<![\\A-Za-z])({'|'.join(GREEK)})(?![A-Za-z])", r"\\\1", text)
    return f"${text}$"


def symbol_of(name: str, symbols: Mapping[str, str] | None = None) -> str:
    r"""Return the name of a parameter as mathematics: the symbol in `symbols`, otherwise one made from the name.

    Example:
        >>> symbol_of("m_star"), symbol_of("eta_r"), symbol_of("rate"), symbol_of("neurons", {"neurons": "N"})
        ('$m^{*}$', '$\\eta_{r}$', 'rate', '$N$')
    """
    symbol = (symbols or {}).get(name, name.replace("_star", "*"))
    first = re.split(r"[_*]", symbol)[0]
    return as_mathematics(symbol) if len(first) < 3 or first in GREEK else symbol.replace("_", " ")


def _subscript(text: str) -> str:
    """Return a subscript: indices and Greek letters unchanged, a word upright.

    >>> _subscript("ij"), _subscript("kappa"), _subscript("local")
    ('ij', 'kappa', '\\\\mathrm{local}')
    """
    return rf"\mathrm{{{text}}}" if text.isalpha() and len(text) > 3 and text not in GREEK else text


def label_of(meaning: str, name: str) -> str:
    r"""Return the label of an axis: the words of a component's meaning and its symbol, or its name.

    Example:
        >>> label_of("router alignment v_i . v*_j (gamma^(1)_ij)", "gamma1")
        'router alignment $\\gamma^{(1)}_{ij}$'
        >>> label_of("overlap w_i . w*_j of student with teacher (M_ww)", "M_ww")
        'overlap of student with teacher $w_{i} \\cdot w^{*}_{j}$'
        >>> label_of("population loss L", "loss")
        'population loss $L$'
    """
    words, symbol = split_meaning(meaning)
    product = re.search(r"\s+(\S+ \. \S+)", words)
    if product and (symbol in (name, "") or re.fullmatch(r"(\w+_)?[MQP]_[a-z]+", symbol)):  # an array, not a symbol
        return f"{words.replace(product[0], '')} {as_mathematics(product[1])}"
    if not symbol:
        return re.sub(r" ([A-Z])$", r" $\1$", words) or name
    words = re.sub(r"\s+(of )?\S+ \. \S+.*$", "", words)  # the product that the symbol names
    return f"{words} {as_mathematics(symbol)}"


def short_label(label: str, name: str) -> str:
    r"""Return the mathematics of a label, or the name of the variable if the label has none.

    Example:
        >>> short_label(r"overlap of student with teacher $w_{i} \cdot w^{*}_{j}$", "M_ww")
        '$w_{i} \\cdot w^{*}_{j}$'
        >>> short_label("mean squared error", "error")
        'error'
    """
    found = re.search(r"\$.*\$", label)
    return found[0] if found else name.replace("_", " ")


def in_lines(label: str) -> str:
    r"""Return a label in lines of about 24 characters, without breaking mathematics.

    Example:
        >>> in_lines("overlap of a student with the teacher that it found $M_{ij}$")
        'overlap of a student\nwith the teacher that it\nfound $M_{ij}$'
    """
    words, _, symbol = label.partition(" $")
    lines = textwrap.wrap(words, 24)
    if not symbol:
        return "\n".join(lines)
    fits = len(lines[-1]) + len(symbol) < 27
    return "\n".join(lines) + (" $" if fits else "\n$") + symbol
