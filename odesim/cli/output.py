"""Output of the commands: results on stdout, messages about failures on stderr, JSON as one object."""

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from odesim.cli.streams import holds_unicode

LONGEST = 600
"""Largest number of characters printed of an error of another package; numba's errors can have pages."""
INTERRUPTED = 130  # that of odesim.errors, which is not light enough to be imported here


def complain(error: BaseException, *, interrupted: bool = False) -> int:
    """Print one sentence about `error` on stderr and return its exit code.

    If the command was `interrupted` before, an internal error is reported as an interruption.
    """
    explain = getattr(error, "format_message", None)  # Typer's own: an unknown option, a missing argument
    if explain is not None:
        said = explain().rstrip(" .")
        print(f"odesim: {_ended(said + _meant(error, said))} Try `{_path(error)} --help`.", file=sys.stderr)
        return 2
    from odesim import errors

    error = errors.of_path(error) or errors.of_disk(error) or errors.of_memory(error) or error
    code = errors.exit_code(error)
    if interrupted and code == errors.INTERNAL:
        error, code = KeyboardInterrupt(), errors.INTERRUPTED
    if isinstance(error, KeyboardInterrupt):
        sentence = "interrupted; no result was written."
    elif code == errors.INTERNAL:
        sentence = _of_program(error)
    else:
        sentence = _ended(str(error))
    print(f"odesim: {sentence}", file=sys.stderr)
    return code


def _of_program(error: BaseException) -> str:
    """Return the message for an error in odesim or in a system, in one line."""
    said = " ".join(str(error).split())
    said = said if len(said) <= LONGEST else f"{said[:LONGEST]} .."
    outside = sys.modules.get("derivations.outside")
    foreign = list(outside.FOREIGN.values()) if outside is not None else []
    whose = f"unless it is of {' or '.join(foreign)}, please report it" if foreign else "please report it"
    return f"internal error, {type(error).__name__}: {said} (--debug shows where; {whose})"


def _path(error: Any) -> str:
    """Return the command whose arguments could not be parsed."""
    return getattr(getattr(error, "ctx", None), "command_path", None) or "odesim"


def _meant(error: Any, said: str) -> str:
    """Return a hint for a usage error: values of a missing option, or the option for a bare name of a system."""
    if type(error).__name__ == "NoSuchOption":
        return _parameter(error)
    form = getattr(getattr(error, "param", None), "metavar", None)
    if type(error).__name__ == "MissingParameter" and form:
        return f" (expected: {form})"
    extra = re.search(r"extra arguments?.*\((\S+)", said)
    if extra:
        import derivations

        name = extra[1].rstrip(")")
        if name in derivations.names():
            return f"; a system is given as --system {name}"
    return ""


def _parameter(error: Any) -> str:
    """Return a hint for a parameter that was written as an option; "" if no system has such a parameter."""
    name = str(getattr(error, "option_name", "")).lstrip("-").replace("-", "_")
    command = getattr(getattr(error, "ctx", None), "command", None)
    if not any("-p" in option.opts for option in getattr(command, "params", ())):
        return ""
    import dataclasses

    import derivations

    known = {
        field.name for each in derivations.names() for field in dataclasses.fields(derivations.system(each).parameters)
    }
    if name not in known:
        return ""
    return f"; {name} is a parameter, which is given as -p {name}=VALUE"


def _ended(sentence: str) -> str:
    """Return the sentence with a full stop at its end."""
    sentence = sentence.strip()
    return sentence if sentence.endswith((".", "?", "!")) else sentence + "."


def print_json(content: Mapping[str, Any]) -> None:
    """Print one JSON object, without NaN (numbers that are not finite become null).

    Characters that stdout cannot encode are escaped.
    """
    from odesim.store.files import jsonable

    escaped = not holds_unicode(sys.stdout)
    print(json.dumps(jsonable(content), indent=2, ensure_ascii=escaped, allow_nan=False))


def print_pairs(pairs: Mapping[str, Any], indent: str = "  ") -> None:
    """Print names and values in two columns; a nested mapping becomes an indented block. Several of them become
    columns.

    Empty mappings and lists are left out.
    """
    width = max((len(name) for name, value in pairs.items() if not _nested(value)), default=0)
    for name, value in pairs.items():
        if _nested(value) and not value:
            continue
        if isinstance(value, Mapping):
            print(f"{indent}{name}")
            print_pairs(value, indent + "  ")
        elif _nested(value):
            print(f"{indent}{name}")
            print_beside(value, indent + "  ")
        else:
            print(f"{indent}{name:<{width}}  {shown(value)}")


def _nested(value: Any) -> bool:
    """Return True if a value is a mapping, or a list of mappings."""
    if isinstance(value, list | tuple):
        return len(value) > 0 and all(isinstance(item, Mapping) for item in value)
    return isinstance(value, Mapping)


def print_beside(mappings: Sequence[Mapping[str, Any]], indent: str = "  ") -> None:
    """Print mappings with the same keys as a table: a row for every key, a column for each mapping. Nested keys are
    joined by points.
    """
    flat = [_flattened(mapping) for mapping in mappings]
    keys = list(dict.fromkeys(key for mapping in flat for key in mapping))
    print_table(["", *map(str, range(1, len(flat) + 1))], [[key, *(m.get(key) for m in flat)] for key in keys], indent)


def _flattened(mapping: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in mapping.items():
        inner = _flattened(value, f"{before}{key}.") if isinstance(value, Mapping) else {f"{before}{key}": value}
        found |= inner
    return found


def shown(value: Any) -> str:
    """Return a value as text for a reader: six digits, long lists shortened."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        items = [shown(item) for item in value[:8]]
        return "[" + ", ".join(items) + (f", ... {len(value)} in all" if len(value) > 8 else "") + "]"
    return "-" if value is None else str(value)


def print_table(header: Sequence[str], rows: Iterable[Sequence[Any]], indent: str = "  ") -> None:
    """Print rows in aligned columns; the last column is not padded."""
    lines = [[shown(cell) for cell in row] for row in [header, *rows]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        padded = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        print((indent + "  ".join(padded)).rstrip())
