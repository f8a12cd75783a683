"""The formulas in a sentence of a claim as MathML: `m^2`, `delta_P`, `E[He_{k_i}(x)]`; the words stay text."""

import html
import re
from typing import Any

from odesim.show.report.tex import GREEK, identifier, letter, sign

GREEKS = frozenset(GREEK) | {"eps"}
CURLY = r"\{(?:[^{}]|\{[^{}]*\})*\}"
ROUND = r"\((?:[^()]|\([^()]*\))*\)"
UNDER = rf"_(?:{CURLY}|\w+|[-+](?!\w))"
OVER = rf"\^(?:{CURLY}|{ROUND}|\*|[-+]?(?:\d+(?:\.\d+)?(?:/\d+)?|[A-Za-z]\w*))"
BASE = r"(?<!\w)[A-Za-z][A-Za-z]*\d*\*?|(?<![\w.])(?:\d+(?:\.\d+)?|\.\d+)|[\])|](?=\^)"
FORMULA = re.compile(rf"(?P<base>{BASE})(?P<under>{UNDER})?(?P<prime>'+)?(?P<over>{OVER})?")
"""Pattern of a name, number or closing bracket, with its scripts."""
WORD = re.compile(rf"\b({'|'.join(sorted(GREEKS - {'-'}, key=len, reverse=True))})(\d?)\b")
PRODUCT = re.compile(r"\bprod\b")
SIGNS = {"<=": "≤", ">=": "≥", "!=": "≠", "+-": "±", "->": "→", "sqrt(": "√(", "sqrt ": "√"}
JOINED = "&#8288;"
"""Pattern without a line break: a closing bracket with its power stays on the line of the bracket."""
EXPONENT = re.compile(r"(?<!\w)[-+]?\d+(?:\.\d+)?e[-+]\d+")
"""Pattern of a number at which a line could break, after the sign of its exponent."""
BIG = {"sum": "∑", "prod": "∏"}


def typeset(text: str) -> Any:
    """A sentence as safe HTML with its scripts, Greek letters and signs set as mathematics.

    Example:
        >>> print(typeset("c_k^2 <= B for <b>"))
        <math><msubsup><mi>c</mi><mi>k</mi><mn>2</mn></msubsup></math> ≤ B for &lt;b&gt;
        >>> print(typeset("O(sqrt d) of delta_P"))
        O(√d) of <math><msub><mi>δ</mi><mi>P</mi></msub></math>
    """
    from markupsafe import Markup

    found, at = [], 0
    for match in FORMULA.finditer(text):
        if not (match["under"] or match["over"]):
            continue
        found += [_words(text[at : match.start()]), _formula(match)]
        at = match.end()
    return Markup("".join([*found, _words(text[at:])]))


def _words(text: str) -> str:
    """Return text between formulas, with signs and Greek letters as characters."""
    for written, shown in SIGNS.items():
        text = text.replace(written, shown)
    shown = html.escape(WORD.sub(lambda found: letter(found[0]), PRODUCT.sub("∏", text)), quote=False)
    return EXPONENT.sub(r'<span class="number">\g<0></span>', shown)


def _formula(match: re.Match[str]) -> str:
    base, star = match["base"].removesuffix("*"), match["base"].endswith("*")
    if base in "])|":
        return f"{JOINED}<math><msup>{sign(base)}{_row(match['over'][1:])}</msup></math>"
    above = ["<mo>∗</mo>"] if star else []
    above += [f"<mo>{'′' * len(match['prime'])}</mo>"] if match["prime"] else []
    above += [_row(match["over"][1:])] if match["over"] else []
    parts = [_atom(base)]
    parts += [_row(match["under"][1:])] if match["under"] else []
    parts += [above[0] if len(above) == 1 else f"<mrow>{''.join(above)}</mrow>"] if above else []
    tag = "msubsup" if match["under"] and above else "msub" if match["under"] else "msup"
    return f"<math><{tag}>{''.join(parts)}</{tag}></math>"


def _atom(text: str) -> str:
    """A name or a number."""
    if text in BIG:
        return f"<mo>{BIG[text]}</mo>"
    return f"<mn>{text}</mn>" if text[0] in ".0123456789" else identifier(letter(text))


def _indices(text: str) -> str:
    """Return the atom of a script; two small letters that are not a name are two indices."""
    if len(text) == 2 and text.isalpha() and text.islower() and letter(text) == text:
        return f"<mrow>{identifier(text[0])}{identifier(text[1])}</mrow>"
    return _atom(text)


def _row(text: str) -> str:
    """Return a script as one element, including its own scripts."""
    if text[0] == "{" or (text[0] == "(" and not re.fullmatch(r"\(\w+\)", text)):  # f^(l) is a derivative
        text = text[1:-1]
    parts, at = [], 0
    for match in FORMULA.finditer(text):
        parts += [sign(mark) for mark in text[at : match.start()] if mark != " "]
        scripted = match["under"] or match["over"]
        bare = _formula(match).removeprefix(JOINED).removeprefix("<math>").removesuffix("</math>") if scripted else ""
        parts.append(bare or _plain(match[0]))
        at = match.end()
    parts += [sign(mark) for mark in text[at:] if mark != " "]
    return parts[0] if len(parts) == 1 else f"<mrow>{''.join(parts)}</mrow>"


def _plain(text: str) -> str:
    return sign(text) if text in "])|" else _indices(text.rstrip("*")) + "<mo>∗</mo>" * text.endswith("*")
