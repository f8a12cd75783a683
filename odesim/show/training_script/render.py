"""Text of a described training script for a back end: its template, and the differences between back ends."""

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from odesim.errors import UsageError
from odesim.request.case import Case
from odesim.show.training_script.description import Part, Script, describe
from odesim.show.training_script.printers import BACKENDS, code, imported
from odesim.show.writing import plain_environment

SPECIAL = ("erf", "expit", "ndtr")
"""Functions of SciPy that a NumPy script uses."""
WHO = {"torch": " in PyTorch", "numpy": " in NumPy", "jax": " in JAX"}
COPIED = {"torch": "p[name].detach().numpy().copy()", "numpy": "p[name].copy()", "jax": "np.array(p[name])"}


def training_script(case: Case, backend: str) -> str:
    """Return the training script of a case for "torch", "numpy" or "jax".

    Raises `UsageError` for another back end, a model that is not declared, and an unsupported feature.
    """
    if backend not in BACKENDS:
        raise UsageError(f"--to must be one of {', '.join(BACKENDS)}, but {backend!r} was given")
    script = describe(case)
    template = plain_environment().get_template(f"training/{backend}.py.jinja")

    def written(described: Script) -> str:
        return _spaced(template.render(s=described, b=Words(backend), who=WHO[backend], copied=COPIED[backend]))

    # A constant without use would be changed by a user in vain.
    text = written(script)
    read = [one for one in script.constants if len(re.findall(rf"\b{one[0]}\b", _code(text))) > 1]
    fixed = [(name, value) for name, value, _ in script.constants if name not in {one[0] for one in read}]
    held = (*((name, value) for name, value in fixed if name not in script.counts), *script.held)
    return written(dataclasses.replace(script, constants=tuple(read), held=held))


def _code(text: str) -> str:
    """Return a script without texts in triple quotes and without comments at the ends of lines."""
    return re.sub(r"  # .*$", "", re.sub(r'""".*?"""', "", text, flags=re.DOTALL), flags=re.MULTILINE)


class Words:
    """Back end of a template: code of expressions, and the differences between the libraries."""

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def code(self, expression: Any) -> str:
        return code(expression, self.backend)

    def distinct(self, script: Script) -> list[Part]:
        """Return the groups whose unit has its own function, without those whose unit another group has."""
        found: dict[str, Part] = {}
        for part in (*script.students, *script.teachers):
            found.setdefault(part.function, part)
        return list(found.values())

    def called(self, part: Part) -> str:
        """Return the unit's function at the fields of the samples."""
        return f"{part.function}({', '.join(part.arguments)})"

    def share(self, part: Part) -> str:
        """Return the share (batch, unit) of every unit."""
        gate = f"{part.function}_gate({', '.join(part.gate_arguments)})"
        softmax = {
            "torch": f"torch.softmax({gate}, dim=1)",
            "numpy": f"softmax({gate}, axis=1)",
            "jax": f"jax.nn.softmax({gate}, axis=1)",
        }
        largest = {
            "torch": f"torch.eye({part.size}, dtype=torch.float64)[{gate}.argmax(1)]",
            "numpy": f"np.eye({part.size})[{gate}.argmax(1)]",
            "jax": f"jnp.eye({part.size})[{gate}.argmax(1)]",
        }
        return {"softmax": softmax, "top1": largest}[part.share][self.backend]

    def array(self, text: str) -> str:
        """A list of numbers as an array."""
        kinds = {"torch": "torch.tensor({}, dtype=torch.float64)", "numpy": "np.array({})", "jax": "jnp.array({})"}
        return kinds[self.backend].format(text)

    def unit_rows(self, text: str) -> str:
        """Rows divided by their norms."""
        kinds = {
            "torch": "({0} / {0}.norm(dim=1, keepdim=True))",
            "numpy": "({0} / np.linalg.norm({0}, axis=1, keepdims=True))",
            "jax": "({0} / jnp.linalg.norm({0}, axis=1, keepdims=True))",
        }
        return kinds[self.backend].format(text)

    def names(self, names: Sequence[str]) -> str:
        """Names as a tuple of texts."""
        return "(" + "".join(f'"{name}", ' for name in names).rstrip() + ")"

    def rate(self, script: Script, factor: str, step: str) -> str:
        """Return the learning rate of an array in a step; `factor` is the factor of its rate."""
        eta = script.values.at["step"].replace("[k]", f"[{step}]")
        parts = [*([factor.replace("[k]", f"[{step}]")] if factor else []), eta]
        parts += ["(1 - momentum)"] if script.damped else []
        return " * ".join(parts) + (" / d" if script.online else "")

    def rates(self, script: Script) -> str:
        """The learning rates of all trained arrays in step k."""
        entries = [f'"{name}": {self.rate(script, factor, "k")}' for name, factor in script.values.factors.items()]
        return "{" + ", ".join(entries) + "}"

    def decay(self, script: Script, name: str, step: str) -> str:
        """The weight decay of a parameter group of PyTorch."""
        if not script.decays or name not in script.vectors:
            return ""
        return f', "weight_decay": {script.values.at["decay"].replace("[k]", f"[{step}]")}'

    def push(self, script: Script) -> str:
        """Return the code of the change that a step subtracts, times the rate."""
        if not script.momentum:
            return "g[name]"
        return "(g[name] + momentum * velocity[name])" if script.nesterov else "velocity[name]"

    def tensors(self, script: Script) -> list[str]:
        """Return the arrays of the inputs that a script of PyTorch converts to tensors."""
        inputs = script.inputs
        flags = (("scale", inputs.scaled), ("probability", inputs.clusters), ("mean", inputs.moved))
        return [name for name, there in (*flags, ("label", inputs.labelled)) if there]

    def uses_functional(self, script: Script) -> bool:
        """Return True if an expression calls torch.nn.functional."""
        return any("functional." in self.code(one) for one in _expressions(script))

    def special(self, script: Script) -> list[str]:
        """The functions of SciPy that a NumPy script calls."""
        slopes = [self.slopes(part.phi, part.arguments) for part in script.students]
        slopes += [self.slopes(part.gate, part.gate_arguments) for part in script.students if part.share]
        text = "\n".join([*map(self.code, _expressions(script)), *slopes, self.slope_of_loss(script)])
        mixed = ["softmax"] if any(part.share == "softmax" for part in self.distinct(script)) else []
        return [*imported(text, SPECIAL), *mixed]

    def slopes(self, expression: Any, arguments: Sequence[str]) -> str:
        """Return the derivatives of an expression with respect to its arguments, as a tuple."""
        import sympy

        known = {one.name: one for one in expression.free_symbols}
        found = [sympy.diff(expression, known[name]) if name in known else sympy.S.Zero for name in arguments]
        return ", ".join(map(self.code, found)) + ("," if len(found) == 1 else "")

    def slope_of_loss(self, script: Script) -> str:
        """Return the derivative of the loss with respect to f; zero for every sample if the loss does not depend on
        f.
        """
        import sympy

        f = sympy.Symbol("f", real=True)
        made = sympy.diff(script.loss, f)
        return self.code(made) + ("" if made.free_symbols & {f, sympy.Symbol("y", real=True)} else " + 0 * f")

    def readouts(self, part: Part) -> str:
        """The readouts (unit,) of a group."""
        if part.readout:
            return f'p["{part.readout}"]'
        fixed = {"sum": "np.ones({0})", "mean": "np.full({0}, 1 / {0})", "root": "np.full({0}, 1 / math.sqrt({0}))"}
        return fixed[part.output].format(part.size) if part.output in fixed else self.array(part.output)

    def targets(self, part: Part, prefix: str, arguments: Sequence[str]) -> str:
        """Names of the derivatives of a unit or a gate."""
        return ", ".join(f"{prefix}_{name}" for name in arguments) + ("," if len(arguments) == 1 else "")

    def chain(self, part: Part, name: str) -> str:
        """Return the derivative of the mean loss with respect to an argument of every unit and sample."""
        own = f"weight * by_{name}"
        return f"{own} + mixed * gate_{name}" if part.share == "softmax" else own


def _expressions(script: Script) -> list[Any]:
    """All expressions of a script."""
    found = [one for part in (*script.students, *script.teachers) for one in (part.phi, part.gate)]
    return [one for one in (*found, script.loss, script.law) if one is not None]


def _spaced(text: str) -> str:
    """Return the text with two empty lines around functions, and at most two anywhere."""
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    head, mark, body = text.partition("\ntick = ")
    body = re.sub(r"(\n(?: {4}|\}|\]).*\n)\n*(?=[A-Za-z#@])", r"\1\n\n", body)
    body = re.sub(r"\n+(?=def |@jax|if __name__)", r"\n\n\n", body).replace("@jax.jit\n\n\ndef", "@jax.jit\ndef")
    made = re.sub(r"\n{4,}", "\n\n\n", head + mark + body).strip() + "\n"
    return made if "math." in _code(made) else made.replace("import math\n\n", "", 1)
