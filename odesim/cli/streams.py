"""ASCII replacements for characters that the encoding of stdout or stderr lacks, so that no command fails for them."""

import codecs
import io
import sys
import unicodedata
from typing import Any

SPELLED = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "·": "*", "⋅": "*", "×": "x", "≤": "<=", "≥": ">=", "≠": "!=",
    "≈": "~", "≡": "==", "∼": "~", "±": "+-", "∓": "-+", "√": "sqrt", "∂": "d", "∞": "inf", "∑": "sum", "∏": "prod",
    "∫": "int", "∇": "grad", "→": "->", "←": "<-", "↦": "|->", "⇒": "=>", "∈": " in ", "∝": "~", "…": "...", "‖": "||",
    "⟨": "<", "⟩": ">", "‘": "'", "’": "'", "“": '"', "”": '"', "ℓ": "l", "⊤": "T", "⊥": "_|_", "µ": "mu", "✓": "ok",
}  # fmt: skip
"""ASCII spellings of characters without a useful Unicode decomposition."""
NAME = "odesim.spelled"
"""Name of the error handler of Python's codecs that spells characters in ASCII."""


def spelled(character: str) -> str:
    """Return a character in ASCII: Greek by name, others by their plain form, and "?" where there is none.

    >>> [spelled(c) for c in "ηΔ≤²ₖé─"]
    ['eta', 'Delta', '<=', '^2', '_k', 'e', '-']
    """
    if character in SPELLED:
        return SPELLED[character]
    name = unicodedata.name(character, "")
    words = name.split()
    if words[:1] == ["GREEK"] and "LETTER" in words:
        letter = words[words.index("LETTER") + 1].lower()
        return letter.capitalize() if "CAPITAL" in words else letter
    if name.startswith("BOX DRAWINGS"):
        return "|" if "VERTICAL" in words else "-"
    plain = unicodedata.normalize("NFKD", character)
    found = "".join(c for c in plain if c.isascii())
    if not found and plain != character:
        found = "".join(spelled(c) for c in plain if not unicodedata.combining(c))
    mark = {"<super>": "^", "<sub>": "_"}.get(unicodedata.decomposition(character).partition(" ")[0], "")
    return mark + found if found else "?"


def _handle(error: Any) -> tuple[str | bytes, int]:
    """Encode what a codec could not; bytes of a file name that are not text are written unchanged."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    if all("\udc80" <= c <= "\udcff" for c in lost):
        return lost.encode("utf-8", "surrogateescape"), error.end
    return "".join(spelled(c) for c in lost), error.end


def spell() -> None:
    """Let stdout and stderr spell the characters that their encodings lack, unless an error handler was asked for.

    The handlers that Python sets by itself are `strict`, `surrogateescape` and, on stderr, `backslashreplace`.
    """
    codecs.register_error(NAME, _handle)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape", "backslashreplace"):
            stream.reconfigure(errors=NAME)


def holds_unicode(stream: Any) -> bool:
    """Return True if a stream can hold every character."""
    return str(getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "").startswith("utf")
