"""The LaTeX document of `odesim derive` as a part of a page: its displays as formulas, its words as Markdown."""

import re
from collections.abc import Iterator

DISPLAY = re.compile(r"\\begin\{align\*\}\n(.*?)\\end\{align\*\}", re.DOTALL)
WORDS = (
    (r"\\\^\{\}", "^"),
    (r"\\textasciitilde\{\}", "~"),
    (r"\\texttt\{((?:[^{}\\]|\\.)*)\}", lambda found: f"`{found[1]}`"),
    (r"\\textbf\{([^{}]*)\}", r"**\1**"),
    (r"\{\\large\\bfseries (.*)\}\n", ""),
    (r"^\\quad -- (.*?)\\\\$", r"- \1"),
)


def markdown(document: str, left_out: tuple[str, ...] = ("Source",)) -> str:
    r"""The body of a document, without its title and the paragraphs left out.

    >>> body = r"\textbf{Tier.} exact." + "\n\\begin{align*}\n&a = 1\n\\end{align*}\n"
    >>> print(markdown("\\begin{document}\n" + body + "\\end{document}"))
    **Tier.** exact.
    <BLANKLINE>
    $$
    \begin{aligned}
    &a = 1
    \end{aligned}
    $$
    """
    body = document.split("\\begin{document}\n", 1)[1].split("\\end{document}", 1)[0]
    for title in left_out:
        body = re.sub(rf"\\textbf\{{{title}\.\}}.*?\n\n", "", body, count=1, flags=re.DOTALL)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(_parts(body))).strip()


def _parts(body: str) -> Iterator[str]:
    end = 0
    for found in DISPLAY.finditer(body):
        yield _words(body[end : found.start()])
        yield f"\n$$\n\\begin{{aligned}}\n{found[1]}\\end{{aligned}}\n$$\n"
        end = found.end()
    yield _words(body[end:])


def _words(text: str) -> str:
    """Words of TeX as Markdown, formulas within them left alone."""
    pieces = re.split(r"(\$[^$]+\$)", text)
    return "".join(piece if piece.startswith("$") else _plain(piece) for piece in pieces)


def _plain(text: str) -> str:
    for pattern, replacement in WORDS:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    text = re.sub(r"(\*\*Closure\.\*\*)\n", r"\1\n\n", text)
    return re.sub(r"\\([_%&#{}])", r"\1", text)
