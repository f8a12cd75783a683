"""The equations of a tier as SymPy expressions that can be transformed and turned into a function of arrays."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import sympy

from derivations.contract import UsageError
from derivations.statement import Definition, Kernel, Statement, function, key_of


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class SymbolicEquations:
    """Equations of motion of one tier in SymPy's index notation: `Idx`, `Indexed`, and `Sum` over an `Idx`.

    `constants` are the values of this request: sizes, fixed overlaps, readouts, by name.
    """

    system: str
    stage: str
    tier: str
    statement: Statement
    constants: Mapping[str, Any]

    @property
    def state(self) -> dict[str, Any]:
        """The state variables by name, as indexed symbols such as `Q_ww[i, k]`."""
        return {key_of(variable.target): variable.target for variable in self.statement.state}

    @property
    def rhs(self) -> dict[Any, Any]:
        """Right-hand sides d/dt by indexed symbol; for a recursion, the change in a step divided by the step."""
        return {equation.target: equation.rate for equation in self.statement.equations}

    @property
    def definitions(self) -> dict[Any, Any]:
        """The expressions of all named arrays and kernels that the right-hand sides use, by indexed symbol or function.

        An array that a rule in NumPy computes (a root, the distribution of a largest value) is an undefined function
        here.
        """
        expressions: dict[Any, Any] = {}
        for definition in self.statement.definitions:
            if isinstance(definition, Kernel):
                expressions |= {
                    function(name)(*definition.arguments): value for name, value in definition.values.items()
                }
            else:
                expressions |= _expressions(definition)
        return expressions

    @property
    def loss(self) -> Any:
        """Population loss as an expression, or None if the equations do not state it."""
        return self.statement.loss

    def entry(self, name: Any, *index: int, **constants: Any) -> Any:
        """Return d/dt of one entry as an expression in entries of the state.

        Sums are written out, definitions are inserted, and constants are numbers.

        Arguments:
            name: The state variable, by its name or its symbol in `state`.
            index: The place of the entry, counted from 0 as in arrays.
            constants: Numbers or symbols that replace those of the request, by name.

        Returns:
            A SymPy expression in symbols such as `M_ww[0, 1]`; `expression.subs({M[0, 1]: 0.2})` with `M =
            state["M_ww"].base` puts numbers in.

        Raises:
            UsageError: The state does not have the name or the place, a name is not that of a constant, or the
                equations have an infinite series or a computation in NumPy (as tiers of the five papers do).

        Example:
            >>> import odesim
            >>> system = odesim.declare(student={"unit": "w^2"}, teacher={})
            >>> odesim.derive(system, "sympy").entry("M_ww", 0, 0).expand()
            -6*M_ww[0, 0]*Q_ww[0, 0] + 6*M_ww[0, 0]
        """
        from odesim.show.page.expand import Expansion

        key, values = key_of(name), self._constants(constants)
        if key not in self.state:
            raise UsageError(f"the state has no variable {key!r}; it has {', '.join(self.state)}")
        target = self.state[key]
        places = getattr(target, "indices", ())
        if len(places) != len(index):
            raise UsageError(f"{target} has {len(places)} indices, but {len(index)} were given")
        unit_diagonals = frozenset(key_of(variable.target) for variable in self.statement.state if variable.unit)
        expansion = Expansion(self.definitions, values, unit_diagonals)
        sizes = [int(expansion.expand(place.upper, {})) + 1 for place in places]
        for place, size in zip(index, sizes, strict=True):
            if not 0 <= place < size:
                raise UsageError(
                    f"{target} has the sizes {sizes}, counted from 0, but the entry {list(index)} was asked for"
                )
        for left_side, rate in self.rhs.items():
            indices = getattr(left_side, "indices", ())
            ends = [[int(expansion.expand(end, {})) for end in (i.lower, i.upper)] for i in indices]
            if key_of(left_side) == key and all(low <= k <= high for k, (low, high) in zip(index, ends, strict=True)):
                return expansion.expand(rate, dict(zip(indices, index, strict=True)))
        return sympy.Integer(0)

    def _constants(self, replacements: Mapping[str, Any]) -> dict[str, Any]:
        """Return the constants of the request, with the given ones replaced. Raises `UsageError` for other names."""
        names = [key_of(constant.target) for constant in self.statement.constants]
        unknown = [name for name in replacements if name not in names]
        if unknown:
            raise UsageError(f"{unknown[0]!r} is not a constant of these equations, which have {', '.join(names)}")
        return {**self.constants, **replacements}

    def lambdify(self, **constants: Any) -> Callable[[Mapping[Any, Any]], dict[str, Any]]:
        """Return the right-hand side as a function of arrays, using only NumPy and SciPy.

        Arguments:
            constants: Numbers that replace those of the request, by name.

        Returns:
            A function of a mapping from names (or symbols) of the state to arrays, which returns d/dt of each by name.
            Other names in the mapping are ignored, so that `run(t)` is a valid state.

        Raises:
            UsageError: A name is not that of a constant, or a constant has no number.
        """
        constant_names = [key_of(constant.target) for constant in self.statement.constants]
        values = self._constants(constants)
        missing = [name for name in constant_names if name not in values]
        if missing:
            raise UsageError(f"lambdify needs numbers for {', '.join(missing)}: give them by name")
        from odesim.show.page import python

        space: dict[str, Any] = {"__name__": "odesim_rates"}
        exec(compile(python.page(self.statement), f"<{self.system} {self.tier}>", "exec"), space)
        bound, names = space["parameters"](**{name: values[name] for name in constant_names}), list(self.state)

        def rates(state: Mapping[Any, Any]) -> dict[str, Any]:
            """The right-hand side at a state."""
            arrays = {str(name): value for name, value in state.items()}
            lacking = [name for name in names if name not in arrays]
            if lacking:
                raise UsageError(f"the state lacks {', '.join(lacking)}; it has the variables {', '.join(names)}")
            return space["rates"]({name: arrays[name] for name in names}, bound)

        return rates

    def __repr__(self) -> str:
        lines = [f"Equations of {self.system} {self.stage}, tier {self.tier}, in SymPy"]
        lines += [f"  d/dt {target} = {_short(rate)}" for target, rate in self.rhs.items()]
        return "\n".join([*lines, f"  definitions: {', '.join(str(key) for key in self.definitions)}"])

    def _repr_latex_(self) -> str:
        from odesim.show.page import latex

        return latex.fragment(self.statement)


def _expressions(definition: Definition) -> dict[Any, Any]:
    """The expression of every target of a definition."""
    if definition.rule is not None:
        expression = definition.means
        if expression is None:
            expression = function(definition.rule.code.__name__)(*definition.value)
        return dict.fromkeys(definition.targets, expression)
    if definition.kernel is not None:
        names = list(definition.kernel.values)
        return {t: function(name)(*definition.value) for t, name in zip(definition.targets, names, strict=True)}
    return {target: definition.value for target in definition.targets}


def _short(rate: Any, limit: int = 100) -> str:
    """Return an expression in one line, shortened."""
    text = str(rate)
    return text if len(text) <= limit else f"{text[: limit - 2]}.."
