"""Page of an entry of the gallery: verdicts of its claims, runs of its presets, equations and figure."""

import dataclasses
import hashlib
import shutil
from pathlib import Path
from typing import Any

from equations import markdown
from pictures import draw, panels
from written import DOCS, remembered, sources

PAGES = DOCS / "gallery"


def told(task: tuple[str, str, bool]) -> dict[str, Any]:
    """The facts of one entry, from an earlier build where nothing that makes them has changed; its picture in place."""
    name, path, sgd = task
    key = hashlib.sha256(
        f"{sources('entries', 'equations', 'pictures')} {sgd}".encode() + Path(path).read_bytes()
    ).hexdigest()
    facts = remembered(f"entries/{name}", key, lambda folder: _made(name, folder, sgd))
    PAGES.mkdir(exist_ok=True)
    kept = DOCS / "_build" / "kept" / "entries" / name / f"{name}.png"
    target = PAGES / kept.name
    if not target.is_file() or target.read_bytes() != kept.read_bytes():
        shutil.copyfile(kept, target)
    return facts


def _made(name: str, folder: Path, sgd: bool) -> dict[str, Any]:
    import derivations
    import odesim
    from derivations.declare.claims import stated
    from odesim.evidence.grade import grade
    from odesim.evidence.verdicts import told as as_mapping

    system = derivations.system(name)
    claims = stated.claims(system)
    verdicts = odesim.verify(name, [claim.id for claim in claims]) if claims else []
    first = odesim.integrate(name)
    alt, sampled = draw(system, name, panels(system, claims, first), folder / f"{name}.png", sgd)
    return {
        "claims": [_claim(verdict) for verdict in verdicts],
        "grade": grade(map(as_mapping, verdicts)).record(),
        "runs": [_run(name, None, "", {})] + [
            _run(name, preset.name, preset.meaning, dict(preset.parameters))
            for preset in system.parameters.declaration.presets
        ],
        "equations": markdown(odesim.derive(name, "latex")),
        "alt": alt,
        "stages": len(system.parameters.declaration.stages),
        "warning": first.summary.get("sgd", ""),
        "sgd": [words for words in sampled if words],
    }  # fmt: skip


def _claim(verdict: Any) -> dict[str, Any]:
    kept = ("claim", "statement", "published", "answer", "predicted", "estimate", "bound", "reason", "expected")
    seen = [dataclasses.asdict(found)["sentence"] for found in verdict.sensitivity]
    return {**{key: getattr(verdict, key) for key in kept}, "seen": seen[:1]}


def _run(name: str, preset: str | None, meaning: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """The result of a preset, or of the defaults."""
    import odesim

    runs = odesim.integrate(name, preset=preset, save_points=3, stage="all")
    found = (runs[-1] if isinstance(runs, list) else runs).summary
    of_parts = (key for key in found if key.startswith("error_") and key.endswith("_final"))
    wanted = dict.fromkeys(("error_final", *of_parts, "best_cosines", "predicted_times"))
    numbers = {key: found[key] for key in wanted if key in found}
    plain = {key: [float(x) for x in v] if isinstance(v, list) else float(v) for key, v in numbers.items()}
    return {"preset": preset, "meaning": meaning, "parameters": parameters, "numbers": plain}
