"""The page of a declared model as a LaTeX document."""

import re
from typing import Any

from derivations.declare.statements import notation
from derivations.declare.statements.closed import tilted
from derivations.declare.statements.content import Content, Shown, closures, parameters_of, stated, writer_of
from derivations.declare.statements.motion import Writer
from derivations.latex import HEAD

WIDE = 78
"""Maximal width of a line of a formula, in characters as counted by `width`."""


def latex(content: Content) -> str:
    """The document; `pdflatex` compiles it as it is."""
    declared, writer = content.declared, writer_of(content, tex=True)
    title = notation.escaped(declared.title)
    lines = [HEAD + rf"{{\large\bfseries {title}}}", ""]
    lines += [_paragraph("Source", notation.escaped(declared.source))] if declared.source else []
    lines += [_paragraph("Tier", content.tier), r"\textbf{Model.}", *_display(writer.model())]
    lines.append(_paragraph("Conventions", notation.escaped("; ".join(stated(content)))))
    lines += [r"\textbf{Order parameters.} " + _order(content), ""]
    lines += [r"\textbf{Closure.}", *(rf"\quad -- {notation.escaped(line.strip())}.\\" for line in content.why), ""]
    if content.further:
        return _closed_document([*lines, r"\textbf{Equations of motion.}", *_display(content.further)])
    if not content.kernels:
        lines += [r"\textbf{Equations of motion.}", *_display([*writer.sampled(), *writer.motion()])]
        return _closed_document([*lines, *_second(writer)])
    lines += [r"\textbf{Loss,} over students $i, k$ and teachers $j, l$.", *_display(writer.loss())]
    lines += [
        r"\textbf{Kernels.}",
        *_display([*writer.covariances(), *writer.kernels(), *writer.held(), *closures(content)]),
    ]
    if content.shown:
        lines += ["In closed form", *_forms(content)]
    lines += [_math_words(remark) + ".\n" for remark in content.remarks]
    drift, *constrained = writer.drift()
    lines += [r"\textbf{Equations of motion.} The drift of the overlap of student vector $i$ with any vector $u$ is"]
    lines += [
        *_display([drift, *constrained]),
        "so that the equations of motion of the order parameters are",
        *_display(writer.motion()),
    ]
    return _closed_document([*lines, *_second(writer, content.tilted)])


def fragment(content: Content) -> str:
    """The equations without preamble and text, as one `align*` for an article."""
    writer = writer_of(content, tex=True)
    if content.further:
        return "\n".join(_display(content.further)) + "\n"
    if not content.kernels:
        formulas = [*writer.model(), *writer.sampled(), *writer.motion(), *writer.second()]
        return "\n".join(_display(formulas)) + "\n"
    kernels = [
        *writer.covariances(),
        *writer.kernels(),
        *writer.held(),
        *closures(content),
        *(_form(content, s) for s in content.shown),
    ]
    formulas = [*writer.model(), *writer.loss(), *kernels, *writer.drift(), *writer.motion(), *writer.second()]
    return "\n".join(_display(formulas)) + "\n"


def _closed_document(lines: list[str]) -> str:
    return "\n".join([*lines, r"\end{document}"]) + "\n"


def _second(writer: Writer, of_erf: bool = False) -> list[str]:
    import sympy

    if not writer.declared.noisy:
        return []
    lines = [rf"\textbf{{Second-order term,}} {writer.letters()}.", *_display(writer.second())]
    if not of_erf:
        return lines
    covariance = r"(u_a\cdot u_b)" if writer.declared.inputs is None else "S_{ab}"
    units = r"$\varphi_a(z) = \alpha_a \operatorname{erf}(\beta_a z)$"
    slopes = rf"{units} and $C_{{ab}} = 2 \beta_a \beta_b\,{covariance}$"
    if writer.declared.moved:
        slopes += r", $\mu_a = \sqrt{2} \beta_a \mathrm{E}[z_a]$"
    named = [
        f"{sympy.latex(sympy.Symbol(name))} = {sympy.latex(value, inv_trig_style='full')}"
        for name, value in tilted(writer.declared.moved)
        if name != "J" or writer.declared.by_cluster
    ]
    factors = r"2 \beta_i \beta_k\,\alpha_i \alpha_k \alpha_m"
    means = [rf"\mathrm{{E}}[\varphi_i' \varphi_k' \varphi_m \varphi_n] = {factors} \alpha_n\,I"]
    if writer.declared.moved and writer.declared.by_cluster:
        means += [rf"\mathrm{{E}}[\varphi_i' \varphi_k' \varphi_m] = {factors}\,J"]
    return [*lines, f"For units {slopes}", *_display([*means, *named])]


def _paragraph(title: str, text: str) -> str:
    return rf"\textbf{{{title}.}} {text}." + "\n"


def _order(content: Content) -> str:
    """Order parameters as formulas, with their names in a run."""
    items, layout = [], content.rows
    for block in layout.blocks:
        (g, r), (h, s) = (
            next(k for k, start in layout.starts.items() if start == b.start) for b in (block.rows, block.columns)
        )
        student, second_student = layout.is_student(g), layout.is_student(h)
        i, k = ("i" if student else "j"), ("k" if second_student else "j" if student else "l")
        name = content.names.tex(block.name).replace(r"\hat", "")
        stars = ["^*" if layout.role(group) == "teacher" else "" for group in (g, h)]
        overlap = rf"{r}{stars[0]}_{i}\cdot {s}{stars[1]}_{k}"
        items.append(rf"${name}_{{{i}{k}}} = {overlap}$ (\texttt{{{notation.escaped(block.name)}}})")
    for line in parameters_of(layout)[len(layout.blocks) :]:
        name, description = line.split(" ", 1)
        items.append(rf"\texttt{{{notation.escaped(name)}}} {notation.escaped(description)}")
    return "; ".join(items) + "."


def _math_words(text: str) -> str:
    return re.sub(r"\b([KVW])_(\w\w)\b", r"$\1_{\2}$", text)


def _display(formulas: Any) -> list[str]:
    """Formulas below each other, each broken to the width of the page at its outer signs."""
    lines = []
    for formula in formulas:
        lines.append((r" \\" + "\n" + r"&\qquad ").join(broken(formula)))
    rows = [("&" + line) for line in lines]
    return [r"\begin{align*}", (r" \\" + "\n").join(rows), r"\end{align*}"]


def broken(formula: str, wide: int = WIDE) -> list[str]:
    r"""A formula in lines: split at `\quad` and signs outside all brackets, or inside brackets if a part is too wide.

    >>> broken(r"a = b + c - d", 5)
    ['a = b', '+ c', '- d']
    """
    lines: list[str] = []
    for part in _parts(formula, 0):
        for piece in _parts(part, 1) if width(part) > wide else [part]:
            joined = f"{lines[-1]} {piece.strip()}" if lines else piece.strip()
            if lines and width(joined) <= wide:
                lines[-1] = joined
            else:
                lines.append(piece.strip())
    if len(lines) > 1:  # growing brackets cannot close in another line
        lines = [line.replace(r"\left", "").replace(r"\right", "") for line in lines]
    return [re.sub(r"\\quad$", "", line) for line in lines]


def _parts(formula: str, deepest: int) -> list[str]:
    """A formula cut before its signs within at most `deepest` brackets, and after `quad` outside all brackets."""
    parts, depth, braces, start = [], 0, 0, 0
    for match in re.finditer(r"\\[a-zA-Z]+|[{}()\[\]]| [+-] ", formula):
        token = match.group()
        braces += (token == "{") - (token == "}")
        depth += (token in ("(", "[")) - (token in (")", "]"))
        if not braces and ((token in (" + ", " - ") and depth <= deepest) or (token == r"\quad" and not depth)):
            cut = match.end() if token == r"\quad" else match.start()
            parts.append(formula[start:cut])
            start = cut
    return [*parts, formula[start:]]


def width(formula: str) -> int:
    r"""Approximate width of a formula in letters.

    >>> width(r"\frac{a}{b_{ik}} + \sqrt{x}_{ik}")
    7
    """
    formula = _flat(formula)
    formula = re.sub(r"\\(left|right|bigl|bigr|mathrm|operatorname|hat|tilde|text|mathit|sqrt|,)", "", formula)
    formula = formula.replace(r"\quad", "xxx").replace(r"\arcsin", "arcsin")
    formula = re.sub(r" [-+=]", "xxx", re.sub(r"\\[a-zA-Z]+", "x", formula))
    formula = re.sub(r"[_^](\{[^{}]*\}|.)", lambda m: "x" * ((len(m.group(1).strip("{}")) + 1) // 2), formula)
    return len(re.sub(r"[{}\s\\]", "", formula))


def _flat(formula: str) -> str:
    """A formula with every fraction replaced by its wider part."""
    start = formula.find(r"\frac{")
    if start < 0:
        return formula
    numerator, tail = _braced(formula[start + 5 :])
    denominator, tail = _braced(tail)
    return formula[:start] + max((_flat(numerator), _flat(denominator)), key=width) + _flat(tail)


def _braced(text: str) -> tuple[str, str]:
    """The content of the first pair of braces, and the text after it."""
    depth = 0
    for k, sign in enumerate(text):
        depth += (sign == "{") - (sign == "}")
        if depth == 0:
            return text[1:k], text[k + 1 :]
    return text[1:], ""


def _forms(content: Content) -> list[str]:
    """The closed forms, long ones over several lines."""
    return _display([_form(content, form) for form in content.shown])


def _form(content: Content, form: Shown) -> str:
    """A closed form; one too wide for a line is a sum, which can be broken."""
    import sympy

    superscript = f"^{{{form.above}}}" if form.above else ""
    options: dict[str, Any] = {
        "symbol_names": content.names.printed, "inv_trig_style": "full", "long_frac_ratio": 1.5
    }  # fmt: skip
    value, abbreviations = form.value, ""
    if not content.names.series and width(sympy.latex(value, **options)) > WIDE:
        value, roots = _spread(value, form.indices)
        abbreviations = "".join(rf",\quad {delta} = {sympy.latex(root, **options)}" for delta, root in roots.items())
    written = ""
    for term in sympy.Add.make_args(value) if value.is_Add else (value,):
        term_text = sympy.latex(sympy.powsimp(term), **options)
        negative = term_text.lstrip().startswith("-")
        written += term_text if not written else f" - {term_text.lstrip()[1:]}" if negative else f" + {term_text}"
    if content.names.series:
        written = written.replace(r"\left(", "(").replace(r"\right)", ")")
    return f"{form.letter}{superscript}_{{{form.indices}}} = {written}{abbreviations}"


def _spread(value: Any, indices: str) -> tuple[Any, dict[Any, Any]]:
    """A wide form as a sum of fractions with one denominator each and abbreviations for long radicands."""
    import sympy

    radicands = sorted({e.base for e in value.atoms(sympy.Pow) if e.exp.is_Rational and e.exp.q == 2}, key=str)
    long = [e for e in radicands if e.is_Add and e.count_ops() > 3]
    primes = {e: sympy.Symbol(rf"\Delta{chr(39) * k}_{{{indices}}}", positive=True) for k, e in enumerate(long)}
    remainder, terms = sympy.expand(value.xreplace(primes)), []
    for angle in sorted(remainder.atoms(sympy.asin), key=str):
        factor = remainder.coeff(angle, 1)
        terms.append(sympy.factor(sympy.together(factor)) * angle)
        remainder = sympy.expand(remainder - factor * angle)
    rooted = [term for term in sympy.Add.make_args(remainder) if term.has(*primes.values(), sympy.exp, sympy.cos)]
    terms += [sympy.Add(*rooted), remainder - sympy.Add(*rooted)]
    if any(term.has(sympy.asin) for term in terms[:-2]) or long:
        terms[-2:] = [sympy.factor(sympy.together(term)) for term in terms[-2:]]
    return sympy.Add(*terms), {name: root for root, name in primes.items()}
