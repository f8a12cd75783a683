"""Reference pages, generated at build time: commands, systems, errata, JSON."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import python_api
from written import DOCS, only, page, remembered, sources, table

PAGES = DOCS / "reference"
TOLD = (
    "systems", "systems saad_solla_1995", "derive --system liao -p tier=riccati",
    "integrate --system liao -p m=2 -p m_star=1 -p d=100 --until 2 --out run --no-figures",
    "compare --system liao -p m=2 -p m_star=1 -p d=100 --until 1 --step-size .01 --batch 16 --out both --no-figures",
    "sweep --system liao -p m=2 -p m_star=1 --over d=100,400 --until 1 --out grid --workers 1",
    "verify --system liao --claim eq-5-sol --workers 1 --out verdicts", "show run", "doctor", "cite --system liao",
)  # fmt: skip
"""Commands whose `--json` is described, each short; files that they leave are described after them."""
LEFT = {words.partition("--out ")[2].split()[0]: words.split()[0] for words in TOLD if "--out " in words}
"""The command that leaves each folder."""


def write() -> None:
    """Write all pages of the reference."""
    page(PAGES / "commands.md", _commands())
    page(PAGES / "systems.md", _systems())
    page(PAGES / "errata.md", _errata())
    page(PAGES / "json.md", _json())
    page(PAGES / "python.md", python_api.page())
    only(PAGES, ("commands", "systems", "errata", "json", "python"))


def _commands() -> Iterator[str]:
    """Every command with its arguments, options and examples, as Typer knows them."""
    from typer.main import get_command

    from odesim.cli import app
    from odesim.cli.examples import EXAMPLES

    root: Any = get_command(app)
    yield from ("# Commands", "", f"{root.help} `odesim COMMAND --help` prints this text.", "")
    for name, command in root.commands.items():
        yield from (f"## odesim {name}", "", _lines(command.help), "")
        rows = [_parameter(parameter) for parameter in command.params]
        yield from (*table(("option", "value", "meaning"), rows), "")
        yield from ("```console", *(f"$ {line}" for line in EXAMPLES[name]), "```", "")
    yield from ("## Exit codes", "", *table(("code", "meaning"), _codes()))


def _lines(text: str) -> str:
    return " ".join(text.split("\f")[0].split())


def _parameter(parameter: Any) -> tuple[str, str, str]:
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or parameter.name}`", "", parameter.help or ""
    flags = ", ".join(f"`{flag}`" for flag in (*parameter.opts, *parameter.secondary_opts))
    value = f"`{parameter.metavar}`" if parameter.metavar else ""
    shown = isinstance(parameter.default, str | int | float) and not isinstance(parameter.default, bool)
    default = f" [default: {parameter.default}]" if shown and "default:" not in (parameter.help or "") else ""
    return flags, value, f"{parameter.help or ''}{' (required)' if parameter.required else ''}{default}"


def _codes() -> list[tuple[str, str]]:
    """The exit codes, as every `--help` ends with them."""
    from odesim.cli.examples import CODES

    said = CODES.removeprefix("Exit codes: ").rstrip(".").split("; ")
    return [(f"`{part.split(' ', 1)[0]}`", part.split(" ", 1)[1]) for part in said]


def _systems() -> Iterator[str]:
    """The parameters, presets, stages and tiers of every paper's system."""
    import derivations
    from derivations.contract.described import domain
    from odesim.cli.inform import describe

    yield from ("# Parameters of the systems", "", "`odesim systems NAME` prints these lists.", "")
    for name in derivations.folders():
        told = describe(derivations.system(name))
        yield from (f"## {name}", "", f"{told['title']}. [The system](../systems/{name}.md).", "")
        rows = [(f"`{p['name']}`", domain(p), f"`{p['default']}`", p.get("meaning", "")) for p in told["parameters"]]
        yield from (*table(("parameter", "domain", "default", "meaning"), rows), "")
        if told["presets"]:
            sets = [(f"`{k}`", " ".join(f"`{n}={v}`" for n, v in p.items())) for k, p in told["presets"].items()]
            yield from (*table(("preset", "values"), sets), "")
        tiers = [
            (f"`{stage['name']}`", f"`{tier['name']}`", tier["kind"], tier["validity"], tier["neglects"] or "none")
            for stage in told["stages"]
            for tier in stage["tiers"]
        ]
        yield from (*table(("stage", "tier", "kind", "validity", "neglected terms"), tiers), "")


def _errata() -> Iterator[str]:
    """The errors in every paper, as documented in its folder."""
    import derivations
    from odesim.show.report.errata import errata

    yield from ("# Errata of the papers", "")
    yield "Each erratum names the claim or test that shows it."
    yield "`odesim verify --system NAME --explain CLAIM` describes a claim."
    for name in derivations.folders():
        system = derivations.system(name)
        yield from ("", f"(errata-{name})=", "", f"## {name}: {system.source.authors}, {system.source.venue}", "")
        for key, (title, text) in errata(name).items():
            yield from (f"### {key}: {title}", "", text, "")


def _json() -> Iterator[str]:
    """The keys of every `--json` and of the JSON files in folders, from commands that are run."""
    made = remembered("json", sources("reference"), lambda folder: _shapes())
    yield from ("# JSON", "")
    yield "`--json` prints one JSON object. The tables list the keys for the named commands."
    yield "Numbers that are not finite are `null`."
    for title, rows in made.items():
        yield from ("", f"## {title}", "", *table(("key", "type"), rows))


def _shapes() -> dict[str, Any]:
    found: dict[str, Any] = {}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(DOCS.parent), os.environ.get("PYTHONPATH", "")])}
    with tempfile.TemporaryDirectory() as place:
        for words in TOLD:
            done = subprocess.run(
                [sys.executable, "-m", "odesim", *words.split(), "--json"],
                cwd=place, env=environment, capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode:
                raise RuntimeError(f"odesim {words} --json: {done.stderr}")
            found[f"odesim {words.split()[0]}" + (" NAME" if words.startswith("systems ") else "")] = _shape(
                json.loads(done.stdout)
            )
        for path in sorted(Path(place).rglob("*.json")):
            folder, file = path.relative_to(place).parts[0], path.name
            if "cells" not in path.parts:
                found[f"{file}, written by odesim {LEFT[folder]}"] = _shape(json.loads(path.read_text("utf-8")))
    return found


def _shape(content: Any, name: str = "", depth: int = 0) -> list[tuple[str, str]]:
    """(key, type) of an object and those within; of a list, what its first item is."""
    if isinstance(content, list) and content and isinstance(content[0], Mapping):
        return [(f"`{name}[]`", "list of objects"), *_inner(content[0], f"{name}[]", depth)]
    if isinstance(content, Mapping) and name:
        return [(f"`{name}`", "object"), *_inner(content, name, depth)]
    if isinstance(content, Mapping):
        return _inner(content, name, depth)
    return [(f"`{name}`", _type(content))]


def _inner(content: Mapping[str, Any], name: str, depth: int) -> list[tuple[str, str]]:
    if depth > 2:
        return []
    return [row for key, item in content.items() for row in _shape(item, f"{name}.{key}".lstrip("."), depth + 1)]


def _type(value: Any) -> str:
    kinds = ((bool, "true or false"), (int | float, "number"), (str, "text"), (list, "list"), (Mapping, "object"))
    return next((word for kind, word in kinds if isinstance(value, kind)), "null")
