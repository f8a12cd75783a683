"""The commands `odesim export` and `odesim conventions`: a declared model in the words of other codes."""

from typing import Annotated, Any

import typer

from odesim.cli.options import CASE, SAID, SAVED, Parameters, SystemName, of, takes

To = Annotated[str, typer.Option("--to", metavar="torch|numpy|jax", help="The library of the training script.")]
OutFile = Annotated[
    str | None, typer.Option("--out", "-o", metavar="FILE.py", help="Write the script here [default: print it].")
]
Replace = Annotated[bool, typer.Option("--overwrite", help="Replace the file of --out.")]
POINTS = {"save_points": SAVED["save_points"]}
FLOW = {name: CASE[name] for name in ("preset", "config", "seed", "until")}


@takes(FLOW, POINTS, SAID)
def export(
    system: SystemName, to: To, parameter: Parameters = None, out: OutFile = None, overwrite: Replace = False,
    **given: Any,
) -> int:  # fmt: skip
    """Write a training script of a declared model for PyTorch, NumPy or JAX, with its start and its conventions."""
    from odesim.cli.output import print_json
    from odesim.request.case import Case
    from odesim.request.parse import parse_assignments
    from odesim.show.training_script.render import training_script
    from odesim.show.writing import write

    text = training_script(Case.build(system, parse_assignments(parameter or []), **of(given, FLOW, POINTS)), to)
    path = None if out is None else write(lambda: text, out, overwrite, "training script")
    if given["json"]:
        print_json({"system": system, "to": to, "out": None if path is None else str(path), "script": text})
    elif path is None:
        print(text, end="")
    else:
        print(path)
    return 0


@takes(FLOW, SAID)
def conventions(system: SystemName, parameter: Parameters = None, **given: Any) -> int:
    """Translate learning rate, initial scale, loss and time of a declared model into the conventions of other codes."""
    from odesim.cli.output import print_json, print_pairs, print_table
    from odesim.request.case import Case
    from odesim.request.parse import parse_assignments
    from odesim.study import conventions as study

    case = Case.build(system, parse_assignments(parameter or []), **of(given, FLOW))
    found = study.conventions(case)
    if given["json"]:
        print_json(found.summary())
        return 0
    header, rows = study.table(found)
    if not given["quiet"]:
        print(f"{found.system}, as declared")
        print_pairs(found.declared)
        print_pairs({"end time": found.end()})
        print("the same training in other conventions" + (", at the beginning" if found.begins else ""))
    print_table(header, rows)
    return 0
