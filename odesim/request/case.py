"""A request, resolved: system, stage, tier and numbers, from defaults, preset, file and options."""

import dataclasses
import functools
import hashlib
import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import derivations
from derivations import outside
from derivations.contract import Dynamics, Map, Stage, System, UsageError, load
from odesim.request.initial_arrays import read_arrays
from odesim.request.parse import (
    LONGEST,
    check_domain,
    choice,
    expression,
    nearest,
    parse_parameters,
    real_number,
    seed_number,
    shortened,
    whole_number,
)
from odesim.request.saved_times import EARLY, SAVED, has_early_times, read_times, require_end

BACKENDS = ("numba", "jax")
EULER = "euler"
"""Name of gradient descent with a given step, for `--solver`."""
AUTO = "auto"
"""Word for the tier that a stage chooses by itself."""
NO_CLOCK = 1.0
"""Value of `until` in the request of a stage without a clock."""
OPTIONS = ("stage", "seed", "until", "save_points", "save_at", "rtol", "atol", "backend", "solver")


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """Request for one run of one stage. Everything is resolved and checked, except by the integrator.

    `explicit` names the parameters and `options` the options that the user gave (an option that has no meaning for the
    equations can then be refused). `atol` is `None` if the integrator chooses it from the scale of the initial state.
    `initial` has the arrays of `--initial`, by name. `save_at` are the times at which states are saved, on the clock of
    the run; `None` stands for `save_points` equally spaced ones.
    """

    system: System
    stage: str
    tier: str
    parameters: Any
    explicit: frozenset[str]
    options: frozenset[str]
    initial: Mapping[str, np.ndarray] | None
    initial_digest: str | None
    seed: int
    until: float
    save_points: int
    rtol: float
    atol: float | None
    backend: str
    solver: str | None
    step: float | None = None
    save_at: tuple[float, ...] | None = None

    @classmethod
    def build(
        cls,
        system: str | System,
        parameters: Mapping[str, Any] | None = None,
        *,
        preset: str | None = None,
        config: str | os.PathLike[str] | None = None,
        initial: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        continued: bool = False,
        step: Any = None,
        **options: Any,
    ) -> "Case":
        """Resolve a request: defaults, then the preset, then the TOML file, then the arguments.

        `parameters` may be values or strings (`"1e6"`, `"1,-1"`); `options` are `stage`, `seed` (0), `until` (the
        stage's horizon), `save_points` (201) or `save_at`, `rtol` (1e-8), `atol`, `backend` ("numba") and `solver`,
        with `step` for the solver "euler". None means that an option is not given. With `continued` the initial state
        comes from an earlier run and is not drawn. Raises `UsageError` for anything unknown, of the wrong type or out
        of domain.
        """
        system = find_system(system) if isinstance(system, str) else system
        written = read_config(config, system) if config is not None else {}
        options = {**written, **{name: value for name, value in options.items() if value is not None}}
        _check_names(options, (*OPTIONS, "step", "preset", "initial", "parameters"), "option")
        preset = preset or options.pop("preset", None)
        for name in ("stage", "solver"):
            if not isinstance(options.get(name), str | None):
                raise UsageError(f"--{name} must be a name, but {shortened(options[name])} was given.")
        initial = initial if initial is not None else options.pop("initial", None)
        step = step if step is not None else options.pop("step", None)
        system, given = restated(system, {**options.pop("parameters", {}), **(parameters or {})})
        options = {name: value for name, value in options.items() if name in OPTIONS}

        arrays, digest = read_arrays(initial)
        values = _checked(system, _resolve(system, preset, given), arrays, frozenset(given), continued)
        named = options.get("stage")
        if named in (None, "") and system.begin is not None:
            named = system.begin(values)
        stage = find_stage(system, named)
        own = stage.adapt(values)
        return cls(
            system=system,
            stage=stage.name,
            tier=_tier(stage, own),
            parameters=own,
            explicit=frozenset(given),
            options=frozenset(options) | ({"until"} if "save_at" in options else set()),
            initial=arrays,
            initial_digest=digest,
            **_numbers(options, stage.horizon(values) if isinstance(stage, Dynamics) else NO_CLOCK, values),
            step=_step(step, options.get("solver")),
        )

    @property
    def name(self) -> str:
        """Name of the system, with which the name of the default folder begins."""
        return self.system.name

    @property
    def by_name(self) -> dict[str, Any]:
        """Parameters as the user gives them, by name. `parameters` are those with which the stage computes."""
        return values_of(self.system.stage(self.stage), self.parameters)

    def require_clock(self) -> None:
        """Raise `UsageError` for a stage without a flow, which is a single step after an earlier run."""
        if isinstance(self.system.stage(self.stage), Map):
            raise UsageError(
                f"stage {self.stage} of {self.system.name} is a single step after an earlier run: give this "
                "run by --from RUN_DIR, or use --stage all."
            )

    def request(self) -> dict[str, Any]:
        """Everything that determines the answer, as plain data; the digest is computed from it."""
        parameters = {name: plain(value) for name, value in self.by_name.items()}
        return {
            "method": "flow",
            "system": derivations.reference(self.system),
            **({"declaration": self.system.digest} if self.system.digest else {}),
            "stage": self.stage,
            "tier": self.tier,
            "parameters": dict(sorted(parameters.items())),
            "initial": self.initial_digest,
            "seed": self.seed,
            "until": self.until,
            "save_points": self.save_points,
            **({"early_times": EARLY} if has_early_times(self) else {}),
            "rtol": self.rtol,
            "atol": self.atol,
            "backend": self.backend,
            "solver": self.solver,
            **({"step": self.step} if self.step is not None else {}),
            **({"save_at": list(self.save_at)} if self.save_at is not None else {}),
        }

    @functools.cached_property
    def digest(self) -> str:
        """Identifier of the request: twelve hexadecimal characters. Equal requests have equal digests."""
        return digest_of(self.request())


def values_of(stage: Stage, parameters: Any) -> dict[str, Any]:
    """Return the parameters as the user gives them, by name, for the parameters with which a stage computes."""
    stated = stage.stated(parameters)
    return {field.name: getattr(stated, field.name) for field in dataclasses.fields(stated)}


def digest_of(request: Mapping[str, Any]) -> str:
    """Return twelve hexadecimal characters that identify a request made of JSON values."""
    text = json.dumps(request, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def find_system(name: str) -> System:
    """Return the system with a name or a reference ("module:SYSTEM", "path/to/file.py:SYSTEM").

    Raises `UsageError` for an unknown name (with the most similar one) or reference.
    """
    try:
        return derivations.system(name)
    except KeyError:
        raise UsageError(
            f"unknown system {name!r}; {nearest(name, [*derivations.names(), *outside.gallery()])}"
        ) from None


def restated(system: System, given: Mapping[str, Any]) -> tuple[System, dict[str, Any]]:
    """Return the system and the parameters of a request; functions of time in place of parameters become part of the
    system.
    """
    return load(system.restate)(system, given) if system.restate else (system, dict(given))


def short_name(reference: str) -> str:
    """Return the name of a system for the names of folders; for a reference, the name of the system it denotes."""
    return find_system(reference).name if outside.is_reference(reference) else reference


def find_stage(system: System, name: str | None) -> Stage:
    """Return the stage with the given name, by default the first that has a clock."""
    known = [stage.name for stage in system.stages]
    if name in (None, "") or (name == "all" and len(known) == 1):
        return next((stage for stage in system.stages if isinstance(stage, Dynamics)), system.stages[0])
    name = str(name)
    if name == "all" or "," in name:
        raise UsageError(f"a run takes one stage, but {name!r} was given; try one of {', '.join(known)}.")
    if name not in known:
        raise UsageError(f"{system.name} has no stage {name!r}; {nearest(name, known)}")
    return system.stage(name)


def read_config(path: str | os.PathLike[str], system: System) -> dict[str, Any]:
    """Return the options of a TOML file; its table [parameters] has the parameters.

    Keys are the options, with `-` or `_`; a relative `initial` is relative to the file.
    """
    if not isinstance(path, str | os.PathLike):
        raise UsageError(f"--config must be the path of a TOML file, but {shortened(path)} was given.")
    path = Path(path)
    try:
        raw = path.read_bytes()
        written = tomllib.loads(raw.decode("utf-8-sig"))
    except OSError as error:
        raise UsageError(f"cannot read the file {path} of --config: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        from derivations.declare.model_files import encoding_of

        raise UsageError(f"{path} {encoding_of(error.object, error.start)}.") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not a valid TOML file: {error}.") from None
    written = {key.replace("-", "_"): value for key, value in written.items()}
    _check_names(written, (*OPTIONS, "step", "preset", "initial", "parameters", "system"), f"key of {path}:")
    named = written.pop("system", system.name)
    if named != system.name and not _leads_to(named, system, path.parent):
        raise UsageError(f"{path} is for system {named!r}, but you asked for {system.name!r}; use only one of the two.")
    if not isinstance(written.get("parameters", {}), dict):
        raise UsageError(f"'parameters' in {path} must be a table: write [parameters] and one line for each.")
    if isinstance(written.get("initial"), str):
        written["initial"] = str(path.parent / written["initial"])
    return written


def _leads_to(named: Any, system: System, folder: Path) -> bool:
    """Return True if the name in a file denotes this system; a path in the file is relative to the folder of the
    file.
    """
    if not isinstance(named, str) or not outside.is_reference(named):
        return named == derivations.reference(system)
    return find_system(str(folder / named) if outside.is_path(named) else named) is system


def plain(value: Any) -> Any:
    """Convert a value to types of JSON: tuples become lists, NumPy scalars Python numbers."""
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return value


def stated(system: System, given: Mapping[str, Any], preset: Any, config: Any) -> dict[str, Any]:
    """Return the parameters that a request names: those of the preset, then of the file, then the given ones."""
    written = read_config(config, system) if config is not None else {}
    return {**_preset(system, preset or written.get("preset")), **written.get("parameters", {}), **given}


def _preset(system: System, preset: Any) -> Mapping[str, Any]:
    """Return the parameters of a preset; without a preset, an empty mapping. Raises `UsageError` for an unknown one."""
    if preset is None:
        return {}
    if not isinstance(preset, str) or preset not in system.presets:
        raise UsageError(f"{system.name} has no preset {preset!r}; {nearest(str(preset), system.presets)}")
    return system.presets[preset]


def _resolve(system: System, preset: Any, given: Mapping[str, Any]) -> Any:
    """Return the parameters of a run: the defaults, then those of the preset, then the given ones."""
    values = parse_parameters(system.parameters, {**_preset(system, preset), **given})
    return system.parameters(**values)


def _checked(
    system: System, values: Any, arrays: Mapping[str, np.ndarray] | None, explicit: frozenset[str], continued: bool
) -> Any:
    """Return the parameters with the sizes of the initial arrays; parameters in `explicit` are unchanged. Raises
    `UsageError`.
    """
    if arrays is None:  # a file is checked by its reader (dependent weights are valid there)
        system.check(values, drawn=False) if continued else system.check(values)
        return values
    values = load(system.read_initial)(arrays, values, explicit)
    for field in dataclasses.fields(values):
        check_domain(getattr(values, field.name), field)
    return values


def _tier(stage: Stage, parameters: Any) -> str:
    """Return the tier named by the parameter `tier`, or the first tier of the stage."""
    tier = getattr(parameters, "tier", None)
    if isinstance(stage, Dynamics) and stage.settled and tier == AUTO:
        return stage.tier(parameters)
    return choice(tier or stage.tiers[0], stage.tiers, f"the tier of stage {stage.name}")


def end_time(until: Any, parameters: Any) -> float:
    """Return an end time from a number, or from an expression in the parameters such as "2*sqrt(d)". Raises
    `UsageError`.
    """
    if getattr(until, "free_symbols", None):  # of SymPy
        until = str(until)
    if not isinstance(until, str) or len(until) > LONGEST or not any(letter.isalpha() for letter in until):
        return real_number(until, "--until")
    try:
        return real_number(until, "--until")
    except UsageError:
        pass
    named = {f.name: getattr(parameters, f.name) for f in dataclasses.fields(parameters)}
    try:
        return expression(until, named, "--until")
    except UsageError as error:
        why = str(error).partition(": ")[2]
        form = "a finite number such as 0.5, or an expression such as '2*sqrt(d)'"
        raise UsageError(f"--until must be {form}, but {shortened(until)} was given: {why}") from None


def _numbers(options: Mapping[str, Any], horizon: float, parameters: Any) -> dict[str, Any]:
    """Return the numerical options of a run, checked and with defaults filled in."""
    seed = seed_number(options.get("seed", 0))
    save_at = read_times(options["save_at"]) if "save_at" in options else None
    if save_at is not None and "save_points" in options:
        raise UsageError("--save-points and --save-at both determine the saved times; give only one of the two")
    until = end_time(options.get("until", horizon if save_at is None else save_at[-1]), parameters)
    if save_at is not None:
        require_end(save_at, until)
    save_points = whole_number(options.get("save_points", SAVED if save_at is None else len(save_at)), "--save-points")
    rtol = real_number(options.get("rtol", 1e-8), "--rtol")
    atol = real_number(options["atol"], "--atol") if "atol" in options else None
    conditions = [
        (until > 0, f"--until must be above 0, but {until:g} was given."),
        (save_at or save_points >= 2, f"--save-points must be at least 2 (both ends), but {save_points} was given."),
        (0 < rtol < 1, f"--rtol must lie between 0 and 1, but {rtol:g} was given; try 1e-8."),
        (
            atol is None or atol >= 0,
            f"--atol must be at least 0, but {atol} was given; leave it out for the default.",
        ),
    ]
    for holds, sentence in conditions:
        if not holds:
            raise UsageError(sentence)
    return {
        "seed": seed,
        "until": until,
        "save_points": save_points,
        "save_at": save_at,
        "rtol": rtol,
        "atol": atol,
        "backend": choice(str(options.get("backend", "numba")), BACKENDS, "--backend"),
        "solver": options.get("solver"),
    }


def _step(step: Any, solver: Any) -> float | None:
    """Return the step of the solver `EULER`. Only this solver has a step, and it needs one."""
    if solver != EULER:
        if step is not None:
            raise UsageError(f"--step is the step of --solver {EULER}; give both, or leave --step out")
        return None
    if step is None:
        raise UsageError(f"--solver {EULER} takes steps of one size: give it with --step")
    size = real_number(step, "--step")
    if not 0 < size < float("inf"):
        raise UsageError(f"--step must be above 0 and finite, but {size:g} was given.")
    return size


def _check_names(given: Mapping[str, Any], known: tuple[str, ...], what: str) -> None:
    """Raise `UsageError` for the first name that is not known."""
    for name in given:
        if name not in known:
            raise UsageError(f"unknown {what} {name!r}; {nearest(name, known)}")
