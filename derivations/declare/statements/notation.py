"""Notation of a page: units in LaTeX, and formulas as LaTeX and as plain text."""

import re

from derivations.declare.grammar import Tree

UPRIGHT = {
    "erf": r"\operatorname{erf}", "exp": r"\exp", "log": r"\log", "cos": r"\cos", "sin": r"\sin", "tanh": r"\tanh",
    "probit": r"\Phi", "logistic": r"\operatorname{logistic}",
}  # fmt: skip
"""Functions of expressions that have a LaTeX command; others are upright words."""
RATE = r"\frac{\mathrm{d}}{\mathrm{d}t} "
"""The sign of a rate."""
BINDING = {"+": 1, "-": 1, "*": 2, "/": 2, "^": 3}
GREEK = ("alpha", "beta", "gamma", "delta", "kappa", "lambda", "mu", "rho", "sigma", "tau", "theta", "zeta")
PLAIN = (
    (r"\frac{\mathrm{d}}{\mathrm{d}t}", "d/dt"), (r"\tfrac12", "1/2"), (r"\mathrm{E}", "E"), (r"\,", " "),
    (r"\cdot ", "."), (r"\bigl", ""), (r"\left", ""), (r"\right", ""), (r"\operatorname", ""), (r"\mathrm", ""),
    (r"\mathit", ""), (r"\bigr", ""), (r"\partial", "d"), (r"\ell", "l"), ("{}", ""),
    (r"\quad", " "), (r"\frac{\eta^2}{B}", "eta^2/B"), (r"\frac{\eta^2}{2B}", "eta^2/(2B)"), (r"\varphi", " phi"),
    (r"\mathcal{N}", "N"), (r"\lambda_{l}", "eigenvalue[l]"), (r"\lambda_{h}", "eigenvalue[h]"),
    (r"\lambda_{cl}", "eigenvalue[c,l]"), (r"\lambda_{ch}", "eigenvalue[c,h]"), (r"\lambda_{c}", "eigenvalue[c]"),
    ("p_{c}", "probability[c]"), ("A_{cn}", "mean_weights[c,n]"), ("A_{n}", "mean_weights[n]"), ("y_{c}", "label[c]"),
    (r"\lambda_{1}", "eigenvalue"), ("f_{l}", "share[l]"), ("f_h", "share[h]"), ("x^{(l)}", "x"),
    (r"\tilde c", "c~"), (r"\sim", "~"), (r"\epsilon", "noise"), ("^*", "*"), (r"\,", " "),
)  # fmt: skip
"""LaTeX of formulas and its plain-text replacements."""


def plain(formula: str) -> str:
    r"""A formula of a page as text.

    >>> plain(r"\sum_{i} a_{i} (w_{i}\cdot x)")
    'sum_i a_i (w_i.x)'
    """
    for sign, written in PLAIN:
        formula = formula.replace(sign, written)
    formula = re.sub(r"\\text\{([^{}]*)\}", r"\1", formula)
    formula = re.sub(r"\{([^{}]*)\}", r"\1", formula)
    formula = re.sub(r"\{([^{}]*)\}", r"\1", formula)
    formula = re.sub(r" {2,}", " ", formula.replace("\\", ""))
    return re.sub(r"(?<=[(\[]) | (?=[)\],])", "", formula).strip()


def escaped(text: str) -> str:
    r"""A user's text escaped for LaTeX.

    >>> escaped("a_i^2 & 5 %")
    'a\\_i\\^{}2 \\& 5 \\%'
    """
    signs = {
        "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "_": r"\_", "^": r"\^{}", "&": r"\&", "%": r"\%",
        "#": r"\#", "$": r"\$", "~": r"\~{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    }  # fmt: skip
    return "".join(signs.get(c, c if c.isprintable() and ord(c) < 0x250 else "?") for c in text)


def name(word: str) -> str:
    r"""A user's name in a formula.

    >>> name("beta"), name("w"), name("shift_2")
    ('\\beta', 'w', '\\mathit{shift\\_2}')
    """
    if word in (*GREEK, "pi"):
        return rf"\{word}"
    return word if len(word) == 1 else rf"\mathit{{{escaped(word)}}}"


def expression(tree: Tree, binding: int = 0) -> str:
    r"""An expression in LaTeX; a slot represents the value of its field.

    >>> from derivations.declare.grammar import read
    >>> expression(read("logistic(beta*v)*He(3, w)"))
    '\\operatorname{logistic}(\\beta v)\\,\\mathrm{He}_{3}(w)'
    >>> expression(read("erf(w/sqrt(2)) - (w + 1)^2"))
    '\\operatorname{erf}\\left(w/\\sqrt{2}\\right) - (w + 1)^{2}'
    """
    if tree.kind == "number":
        return f"{tree.value:g}"
    if tree.kind == "name":
        return name(tree.word)
    if tree.kind == "call":
        return _call(tree)
    level = BINDING[tree.kind]
    first, second = tree.parts
    if tree.kind == "^":
        base = expression(first, 4)
        return rf"{base}^{{{expression(second)}}}"
    if tree.kind == "-" and first.kind == "number" and first.value == 0:
        written = f"-{expression(second, 2)}"
    elif tree.kind == "*":
        left, right = expression(first, level), expression(second, level)
        sign = r" \cdot " if right[:1].isdigit() else r"\," if "(" in left + right else " "
        written = left + sign + right
    elif tree.kind == "/":
        written = f"{expression(first, level)}/{expression(second, 3)}"
    else:
        written = f"{expression(first, level)} {tree.kind} {expression(second, level + (tree.kind == '-'))}"
    return f"({written})" if level < binding or (tree.kind == "/" and binding == 3) else written


def _call(tree: Tree) -> str:
    if tree.word in ("He", "wick"):
        degree, inner = int(tree.parts[0].value), expression(tree.parts[1])
        if tree.word == "He":
            return rf"\mathrm{{He}}_{{{degree}}}({inner})"
        return rf"|{inner}|^{{{degree}}}\mathrm{{He}}_{{{degree}}}({inner}/|{inner}|)"
    inner = expression(tree.parts[0])
    if tree.word == "sqrt":
        return rf"\sqrt{{{inner}}}"
    if tree.word == "abs":
        return rf"\lvert {inner} \rvert"
    left, right = (r"\left(", r"\right)") if "\\sqrt" in inner or "^" in inner else ("(", ")")
    return f"{UPRIGHT.get(tree.word, rf'{chr(92)}operatorname{{{tree.word}}}')}{left}{inner}{right}"
