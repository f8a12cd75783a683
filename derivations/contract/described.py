"""Descriptions of a system: its representation at a prompt, the text of `help`, and its page in a notebook."""

import dataclasses
import html
from collections.abc import Iterable, Sequence
from typing import Any


def lines(system: Any) -> str:
    """A system in four lines.

    >>> import derivations
    >>> print(lines(derivations.system("liao")).splitlines()[0])
    System liao: Soft-routed sigmoid mixture of experts, teacher-student, population gradient flow
    """
    stages = ", ".join(f"{stage.name} ({'/'.join(stage.tiers)})" for stage in system.stages)
    names = ", ".join(f"{f.name}={_short(f.default)}" for f in dataclasses.fields(system.parameters))
    return "\n".join(
        [
            f"System {system.name}: {system.title}",
            f"  {system.source}, {system.source.title}",
            f"  parameters: {names}",
            f"  stages (tiers): {stages}; presets: {', '.join(system.presets) or 'none'}",
        ]
    )


def text(system: Any) -> str:
    """Return the text of `help(system)`: source, parameters with domains and meanings, presets, stages, calls."""
    rows = [(name, _short(default), domain, meaning) for name, default, domain, meaning in parameters(system)]
    widths = [max(len(row[k]) for row in rows) for k in range(3)] if rows else [0, 0, 0]
    said = [f"{system.name}: {system.title}", f"{system.source}, {system.source.title}"]
    said += [
        *([system.source.link] if system.source.link else []),
        *([system.about] if system.about else []),
        "",
        "Parameters",
    ]
    said += ["  " + "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=False)) + f"  {row[3]}" for row in rows]
    said += ["", "Presets"] if system.presets else []
    said += [f"  {name}: {', '.join(f'{k}={v}' for k, v in given.items())}" for name, given in system.presets.items()]
    said += ["", "Stages"]
    for stage in system.stages:
        said += [
            f"  {stage.name}: {stage.meaning}",
            f"    clock: {stage.clock}",
            f"    tiers: {', '.join(stage.tiers)}",
        ]
    verbs = ["integrate", "simulate", "compare", "derive", *(["verify"] if system.claims else [])]
    calls = ", ".join(f'odesim.{verb}("{system.name}", ..)' for verb in verbs)
    return "\n".join([*said, "", f"{calls}; `odesim systems {system.name}` describes every tier."])


def page(system: Any) -> str:
    """A system as HTML: the same as `text`, in tables."""
    stages = [[s.name, s.meaning, s.clock, ", ".join(s.tiers)] for s in system.stages]
    presets = [[name, ", ".join(f"{k}={v}" for k, v in given.items())] for name, given in system.presets.items()]
    rows = [[name, _short(default), domain, meaning] for name, default, domain, meaning in parameters(system)]
    return "".join(
        [
            f"<p><b>{html.escape(system.name)}</b>: {html.escape(system.title)}<br>",
            f"{html.escape(f'{system.source}, {system.source.title}')}</p>",
            _table(("parameter", "default", "domain", "meaning"), rows),
            _table(("stage", "meaning", "clock", "tiers"), stages),
            _table(("preset", "parameters"), presets) if presets else "",
            f'<p>{_claims(system)}</p>',
        ]
    )  # fmt: skip


def parameters(system: Any) -> list[tuple[str, Any, str, str]]:
    """Name, default, domain in words, and meaning of every parameter."""
    return [
        (f.name, f.default, domain(f.metadata), str(f.metadata.get("meaning", "")))
        for f in dataclasses.fields(system.parameters)
    ]


def domain(metadata: Any) -> str:
    """The domain of a parameter in words.

    >>> domain({"minimum": 1, "maximum": None, "choices": None})
    '>= 1'
    """
    if metadata.get("choices"):
        return " ".join(metadata["choices"])
    signs = (("minimum", ">="), ("above", ">"), ("maximum", "<="))
    return ", ".join(f"{sign} {metadata[key]:g}" for key, sign in signs if metadata.get(key) is not None)


def _claims(system: Any) -> str:
    """Return the call that tests the claims."""
    if not system.claims:
        return "no claims"
    return f'claims: <code>odesim.verify("{html.escape(system.name)}", ..)</code>'


def _table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    def line(cells: Sequence[Any], kind: str) -> str:
        return "<tr>" + "".join(f"<{kind}>{html.escape(str(cell))}</{kind}>" for cell in cells) + "</tr>"

    return f"<table><thead>{line(header, 'th')}</thead><tbody>{''.join(line(r, 'td') for r in rows)}</tbody></table>"


def _short(value: Any) -> str:
    """A default in a few characters."""
    said = repr(value) if isinstance(value, str) else str(value)
    return said if len(said) <= 24 else f"{said[:22]}.."
