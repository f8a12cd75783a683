"""The commands that print information: `odesim systems`, `derive`, `doctor` and `cite`."""

import dataclasses
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odesim.cli.options import AsJson, Debug, Parameters, Preset, Quiet, StageName, SystemName

if TYPE_CHECKING:
    from derivations.contract import System


def systems(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Describe this system in full [default: list all].")
    ] = None,
    toml: Annotated[
        bool, typer.Option("--toml", help="Print the declaration of this model, as a start for a file of your own.")
    ] = False,
    json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """List all systems, or describe one: its parameters, presets, stages, tiers and state."""
    import derivations
    from derivations import outside
    from odesim.cli.output import print_json, print_table
    from odesim.request.case import find_system

    if toml:
        print(declaration_of(name), end="")
        return 0
    if name is not None:
        described = describe(find_system(name))
        if json:
            print_json(described)
        else:
            _print_system(described)
        return 0
    known = {one: find_system(one) for one in derivations.names()}
    shipped = {one: find_system(one) for one in outside.gallery()}
    if json:
        found = [
            [{"name": one, "title": s.title, "source": str(s.source)} for one, s in listed.items()]
            for listed in (known, shipped)
        ]
        print_json({"systems": found[0], "gallery": found[1]})
    elif quiet:
        print("\n".join(known))
    else:
        for listed, what in (
            (known, ""),
            (shipped, "\nDeclared in a few lines, with known results as claims:\n"),
        ):
            print(what, end="")
            rows = [[one, s.title, str(s.source)] for one, s in listed.items()]
            print_table(["name", "title", "source"], rows, indent="")
    return 0


def declaration_of(name: str | None) -> str:
    """Return the text of the file that declares a model of the gallery or the user.

    Raises `UsageError` for no name, and for a system that is written in Python.
    """
    from derivations import outside
    from odesim.errors import UsageError
    from odesim.request.case import find_system

    if name is None:
        raise UsageError("--toml needs a NAME: an entry of the gallery or a file; `odesim systems` lists the entries")
    system = find_system(name)
    if not system.declaration:
        raise UsageError(f"{name} is written in Python and has no declaration; take an entry of the gallery")
    return Path(outside.place_of(name)).read_text(encoding="utf-8")


def describe(system: "System") -> dict[str, Any]:
    """Return a system as plain data: source, parameters, presets, stages with their tiers and state."""
    from derivations.contract import UsageError, load
    from derivations.headlines import COMMON

    default = system.parameters()
    stages = []
    for stage in system.stages:
        tiers, missing = [], []
        for tier in stage.tiers if stage.equations else ():
            try:
                equations = load(stage.equations)(default, tier)
            except UsageError as reason:  # a model without this tier says why
                missing.append({"name": tier, "reason": str(reason).removeprefix(f"tier {tier}: ")})
                continue
            state = [
                {"name": c.name, "dims": c.dims, "bounds": c.bounds, "symbol": c.symbol, "meaning": c.meaning}
                for c in equations.state
            ]
            tiers.append(
                {
                    "name": tier,
                    "kind": equations.advance.kind,
                    "validity": equations.about.validity,
                    "neglects": equations.about.neglects,
                }
                | {"state": state}
            )
        stages.append({"name": stage.name, "kind": stage.kind, "clock": stage.clock, "meaning": stage.meaning})
        stages[-1] |= {"tiers": tiers, "missing": missing}
    return {
        "name": system.name,
        "title": system.title,
        "source": str(system.source),
        "paper": system.source.title,
        "link": system.source.link,
        "about": system.about,
        "parameters": [
            {"name": f.name, "default": f.default, **{k: v for k, v in f.metadata.items() if v is not None}}
            for f in dataclasses.fields(system.parameters)
        ],
        "presets": {name: dict(values) for name, values in system.presets.items()},
        "stages": stages,
        "summary": {**(load(system.headlines) if system.headlines else {}), **COMMON},
    }


def _print_system(described: dict[str, Any]) -> None:
    """Print one system for a reader."""
    from derivations.contract.described import domain
    from odesim.cli.output import print_pairs, print_table

    print(f"{described['name']}: {described['title']}")
    paper = f", {described['paper']}" if described["paper"] != described["title"] else ""
    print(f"  {described['source']}{paper}")
    for said in (described["link"], described["about"]):
        if said:
            print(textwrap.fill(said, 110, initial_indent="  ", subsequent_indent="  "))
    print("parameters")
    rows = [[p["name"], p["default"], domain(p), p.get("meaning", "")] for p in described["parameters"]]
    print_table(["name", "default", "domain", "meaning"], rows)
    print("presets")
    print_pairs({name: " ".join(f"{k}={v}" for k, v in p.items()) for name, p in described["presets"].items()})
    for stage in described["stages"]:
        print(f"stage {stage['name']} ({stage['kind']}): {stage['meaning']}")
        print(f"  clock: {stage['clock']}")
        for tier in stage["tiers"]:
            print(f"  tier {tier['name']} ({tier['kind']}): {tier['validity']}")
            print(f"    neglects: {tier['neglects'] or 'nothing'}")
            rows = [[c["name"], ", ".join(c["dims"]), c["symbol"], c["meaning"]] for c in tier["state"]]
            print_table(["state", "dimensions", "symbol", "meaning"], rows, indent="    ")
        for tier in stage["missing"]:
            print(f"  no tier {tier['name']}: {tier['reason']}")
    print("summary of a run, by key")
    print_pairs(described["summary"])


def derive(
    *,
    system: SystemName,
    parameter: Parameters = None,
    preset: Preset = None,
    stage: StageName = None,
    format: Annotated[
        str,
        typer.Option(
            metavar="text|latex|latex-fragment|python|kernels",
            help="Text, LaTeX document or equations, stand-alone Python, or the kernels that are compiled.",
        ),
    ] = "text",
    explained: Annotated[
        bool,
        typer.Option("--explain", help="Print why the equations close, and the method and error of each term."),
    ] = False,
    json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Print the equations of motion of a tier, with all definitions, as odesim evaluates them."""
    import derivations
    from odesim.cli.output import print_json
    from odesim.errors import UsageError
    from odesim.request.case import Case
    from odesim.request.parse import choice, parse_assignments
    from odesim.show.page.render import FORMATS, explain, render

    if format == "sympy":
        raise UsageError('SymPy expressions are objects of Python: odesim.derive(.., format="sympy") returns them')
    choice(format, FORMATS, "--format")
    if explained and format != "text":
        raise UsageError(f"--explain prints text: leave out --format {format}")
    case = Case.build(system, parse_assignments(parameter or []), preset=preset, stage=stage)
    if explained:
        text = explain(case.system, case.parameters, case.stage)
    else:
        text = render(case.system, case.parameters, format, case.stage)
    if json:
        found = {"system": derivations.reference(case.system), "stage": case.stage, "tier": case.tier}
        print_json({**found, "format": "explanation" if explained else format, "text": text})
    else:
        print(text.removesuffix("\n"))
    return 0


def doctor(json: AsJson = False, quiet: Quiet = False, debug: Debug = False) -> int:
    """Examine this installation: versions, device, precision, caches, and known faults of JAX."""
    from odesim.cli.output import print_json
    from odesim.show.doctor import examine

    findings = examine()
    bad = [finding for finding in findings if finding.code]
    if json:
        rows = [dataclasses.asdict(finding) for finding in findings]
        print_json({"healthy": not bad, "findings": rows})
    else:
        for finding in bad if quiet else findings:
            print(f"{'BAD ' if finding.code else 'ok  '} {finding.name:<22} {finding.found}")
    return max((finding.code for finding in bad), default=0)


def cite(
    check: Annotated[str | None, typer.Argument(metavar="[DIR]", help="The folder of a check.")] = None,
    system: Annotated[
        str, typer.Option("--system", "-s", metavar="NAME|FILE", help="The system (see `odesim systems`).")
    ] = "",
    json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Print the BibTeX entries of a paper and of odesim; for a check, also the entry of the check."""
    from odesim.cli.output import print_json
    from odesim.errors import UsageError
    from odesim.request.case import find_system
    from odesim.show.cite import bibtex, entries_of_check

    if (check is None) == (not system):
        raise UsageError("cite takes the folder of a check, or --system NAME: give one of the two")
    if check is not None:
        from odesim.store.checks import stored

        record = stored(Path(check))
        system, entries = str(record["system"]["name"]), entries_of_check(record)
    else:
        entries = bibtex(find_system(system))
    if json:
        print_json({"system": system, "bibtex": entries})
    else:
        print("\n\n".join(entries))
    return 0
