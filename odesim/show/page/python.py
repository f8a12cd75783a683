"""A statement as a stand-alone Python file with NumPy and SciPy: parameters, right-hand side, an example."""

import dataclasses
import inspect
import textwrap
from typing import Any

from derivations.equations.program import names_in
from derivations.statement import Definition, Kernel, Largest, Special, Statement, indices_of, key_of, sp
from odesim.show.page import templates
from odesim.show.page.code import Code

WIDTH = 118


def wrapped(line: str, indent: str = "    ") -> str:
    """Return a line of code broken to the width of a file, inside its brackets or new ones."""
    if len(indent + line) <= WIDTH:
        return indent + line
    if line.startswith('"""'):
        return "\n".join(textwrap.wrap(line, WIDTH, initial_indent=indent, subsequent_indent=indent))
    if line.startswith("def "):
        head, _, tail = line.partition("(")
        parts = textwrap.wrap(tail.removesuffix("):"), WIDTH - len(indent) - 4, break_long_words=False)
        return "\n".join([f"{indent}{head}(", *(f"{indent}    {p}" for p in parts), f"{indent}):"])
    head, sign, tail = ("return", " ", line[7:]) if line.startswith("return ") else line.partition(" = ")
    parts = textwrap.wrap(tail, WIDTH - len(indent) - 4, break_long_words=False, break_on_hyphens=False)
    return "\n".join([f"{indent}{head}{sign}(", *(f"{indent}    {p}" for p in parts), f"{indent})"])


class Python:
    """The file of a statement."""

    def __init__(self, statement: Statement) -> None:
        self.statement, self.code = statement, Code(statement)
        self.names = [key_of(c.target) for c in statement.constants]
        self.fixed = [d for d in statement.arrays if any(i.upper == sp.oo for t in d.targets for i in indices_of(t))]

    def page(self) -> str:
        """The text of the file."""
        parts = [self.head(), *self.helpers(), *map(self.module_array, self.fixed)]
        parts += [self.kernel(k, "") for k in self.statement.kernels if not self.local(k)]
        parts += [self.rule(d) for d in self.statement.arrays if d.rule is not None]
        parts += [self.parameters(), self.state(), templates.PACK, self.rates(), self.example()]
        return "\n\n\n".join(dict.fromkeys(part.strip("\n") for part in parts if part)) + "\n"

    # -- head
    def head(self) -> str:
        """Docstring and imports."""
        s, text = self.statement, self.code.text
        lines = [f"{label.capitalize()}: {words}." for label, words in text.facts()]
        lines = [x for line in lines for x in textwrap.wrap(line, WIDTH - 2)]
        for heading, rows in text.blocks(without=("Loss", "Kernels", "Derivation", "Conserved")):
            lines += ["", heading]
            for left, rights, _ in rows:
                first, *continuation = text.broken(rights[-1], 100 - len(left))
                lines += [f"    {left} = {first}", *(" " * (len(left) + 11) + x for x in continuation)]
        for sentence in s.rules:
            lines += ["", *textwrap.wrap(text.prose(sentence), WIDTH - 2)]
        return templates.HEAD.format(title=f"{s.name}: {text.prose(s.title)}", body="\n".join(lines))

    def helpers(self) -> list[str]:
        """The quadratures and functions that the statement needs."""
        integrals = any(sp.sympify(d.value).has(sp.Integral) for d in self.fixed if d.rule is None)
        values = [v for kernel in self.statement.kernels for v in kernel.values.values()]
        special_functions = sorted({type(x) for v in values for x in sp.sympify(v).atoms(Special)}, key=str)
        sources = [textwrap.dedent(inspect.getsource(kind.code)) for kind in special_functions]
        return [templates.INTEGRAL] * integrals + [templates.MEAN] * bool(self.statement.laws) + sources

    def module_array(self, d: Definition) -> str:
        """Return an array without dependencies: the coefficients of a series."""
        (index,) = indices_of(d.targets[0])
        lines = [f"{index.name} = np.arange({self.statement.terms[index.name]})"]
        lines.append('with np.errstate(divide="ignore", invalid="ignore"):  # in branches that are not taken')
        return "\n".join([*lines, wrapped(f"{key_of(d.targets[0])} = {self.code.expr(d.value, (index,))}")])

    def rule(self, d: Definition) -> str:
        """The source of an array operation."""
        assert d.rule is not None
        parts = (*d.rule.helpers, d.rule.code)
        return "\n\n".join(textwrap.dedent(inspect.getsource(inspect.unwrap(part))) for part in parts)

    # -- kernels
    def local(self, kernel: Kernel) -> bool:
        """Return True if a kernel uses constants, and is therefore defined inside the right-hand side."""
        fixed_names = {key_of(d.targets[0]) for d in self.fixed}
        local_names = {*self.names, *(key_of(t) for d in self.statement.arrays for t in d.targets)} - fixed_names
        atoms = {key_of(a) for v in kernel.values.values() for a in v.atoms(sp.Indexed, sp.Symbol)}
        called = [k for k in self.statement.kernels if k is not kernel for v in kernel.values.values()
                  if any(type(f).__name__ in k.values for f in v.atoms(sp.Function))]  # fmt: skip
        return bool((atoms - {a.name for a in kernel.arguments}) & local_names) or any(map(self.local, called))

    def kernel(self, kernel: Kernel, indent: str) -> str:
        """Return one function for all functions of a kernel, with common parts named."""
        names, values = list(kernel.values), list(kernel.values.values())
        calls = {c for v in values for c in v.atoms(sp.Function) if self.statement.kernel_of(type(c).__name__)}
        # The variable of an integral or a mean is known only inside.
        calls = {c for c in calls if any(a.is_Integer for a in c.args) or c.free_symbols <= set(kernel.arguments)}
        short = {c: sp.Symbol(self.shortened(c)) for c in sorted(calls, key=str) if c not in values}
        self.code.in_kernel = self.code.text.by_power = True
        lines = [f"{symbol} = {self.code.expr(c)}" for c, symbol in short.items()]
        bodies = [self.code.expr(v.xreplace(short)) + self.missing(kernel, v) for v in values]
        self.code.in_kernel = self.code.text.by_power = False
        if len(values) > 1:
            lines += [f"{n} = {body}" for n, body in zip(names, bodies, strict=True)]
        result = ", ".join(names) if len(names) > 1 else bodies[0]
        head = f"def {self.called(kernel)}({', '.join(a.name for a in kernel.arguments)}):"
        note = self.code.text.prose(kernel.note)
        doc = f'"""{", ".join(names)}{": " + note if note else ""}."""'
        body = [wrapped(x, indent + "    ") for x in (doc, *lines, f"return {result}")]
        return "\n".join([indent + head, *body])

    def shortened(self, call: Any) -> str:
        """Return a name for the value of a kernel at its arguments, followed by its orders if it has any."""
        orders = "".join(str(a) for a in call.args if a.is_Integer)
        return type(call).__name__ + (orders or "_value")

    def missing(self, kernel: Kernel, value: Any) -> str:
        """Return factors that give a value the shape of unused arguments: its orders, and for a constant the last
        argument.
        """
        orders = [a for a in kernel.arguments[: kernel.orders] if a not in value.free_symbols]
        names = orders if value.free_symbols else [*orders, kernel.arguments[-1]]
        return "".join(f" + 0 * {a.name}" for a in dict.fromkeys(names))

    def called(self, kernel: Kernel) -> str:
        """The name of a kernel's function."""
        return kernel.name if len(kernel.values) > 1 else next(iter(kernel.values))

    # -- parameters and state
    def parameters(self) -> str:
        """The constants with their defaults."""
        rows = [(key_of(c.target), c) for c in self.statement.constants]
        signature = [f"{n}={None if isinstance(c.default, str) else c.default}" for n, c in rows]
        descriptions = "; ".join(f"{n}: {self.code.text.prose(c.meaning)}" for n, c in rows)
        lines = [wrapped(f'"""{descriptions}."""')]
        for n, c in rows:
            if isinstance(c.default, str):
                kind = "int" if c.whole else "float"
                lines.append(wrapped(f"{n} = np.asarray({c.default} if {n} is None else {n}, {kind})"))
        lines.append(wrapped(f"return SimpleNamespace({', '.join(f'{n}={n}' for n, _ in rows)})"))
        return "\n".join([wrapped(f"def parameters({', '.join(signature)}):", ""), *lines])

    def size(self, index: Any) -> str:
        """The length of an array along an index, in the names of the constants."""
        return self.code.number(sp.sympify(index.upper) + 1)

    def state(self) -> str:
        """The shapes of the state's arrays."""
        shapes = [(key_of(v.target), [self.size(i) for i in indices_of(v.target)]) for v in self.statement.state]
        body = "".join(f'        "{n}": ({"".join(f"{x}, " for x in shape).rstrip(" ")}),\n' for n, shape in shapes)
        return templates.SHAPES.format(names=wrapped(self.taken()), body=body)

    def taken(self) -> str:
        """The constants as local names."""
        return f"{', '.join(self.names)}, = {', '.join('p.' + n for n in self.names)},"

    # -- right-hand side
    def rates(self) -> str:
        """The right-hand side."""
        s = self.statement
        subject = (
            "the change of every array in a step, divided by the step"
            if s.kind == "recursion"
            else "d/dt of every array"
        )
        out = [
            templates.QUIET,
            "def rates(state, p):",
            f'    """The right-hand side: {subject} of the state."""',
            wrapped(self.taken()),
        ]
        states = [key_of(v.target) for v in s.state]
        out += [wrapped(f"{', '.join(states)}, = (np.asarray(state[name], float) for name in shapes(p))")]
        pinned = (key_of(v.target) for v in s.state if v.unit)
        out += [f"    {n} = {n} * (1 - np.eye(len({n}))) + np.eye(len({n}))  # {n}[i, i] = 1" for n in pinned]
        out += [f"    {i.name} = np.arange({self.code.number(i.lower)}, {self.size(i)})" for i in self.bare()]
        for d in s.definitions:
            if isinstance(d, Kernel):
                out += [self.kernel(d, "    ")] if self.local(d) else []
            elif d not in self.fixed:
                out.append(wrapped(self.definition(d)))
        out += [line for name in states for line in self.moved(name)]
        return "\n".join([*out, wrapped("return {" + ", ".join(f'"{n}": d_{n}' for n in states) + "}")])

    def definition(self, d: Definition) -> str:
        """Return the line that defines one named array, or several."""
        axes = tuple(indices_of(d.targets[0]))
        names = ", ".join(key_of(t) for t in d.targets)
        if d.rule is not None:
            return f"{names} = {d.rule.code.__name__}({', '.join(key_of(v) for v in d.value)})"
        if d.kernel is not None:
            arguments = ", ".join(self.code.expr(a, axes) for a in d.value)
            return f"{names} = {self.broadcast(d, f'{self.called(d.kernel)}({arguments})')}"
        return f"{names} = {self.spread(d.targets[0], self.code.expr(d.value, axes), d.value)}"

    def broadcast(self, d: Definition, code: str) -> str:
        """Return code of the values of a kernel, with all axes if one of them does not depend on all."""
        assert d.kernel is not None
        axes, full = indices_of(d.targets[0]), True
        for value in d.kernel.values.values():
            read = [a for slot, a in zip(d.kernel.arguments, d.value, strict=True) if slot in value.free_symbols]
            full = full and not set(axes) - set(self.code.free(sp.Tuple(*read), tuple(axes)))
        if full:
            return code
        zeros = f"np.zeros(({', '.join(self.code.number(i.upper - i.lower + 1) for i in axes)},))"
        return f"{code} + {zeros}" if len(d.targets) == 1 else f"(value + {zeros} for value in {code})"

    def spread(self, target: Any, code: str, value: Any) -> str:
        """Return code with the shape of its target, if an index of the target is missing in the value."""
        indices = indices_of(target)
        missing = [i for i in indices if i not in self.code.free(sp.sympify(value), tuple(indices))]
        if not missing:
            return code
        sizes = ", ".join(self.code.number(i.upper - i.lower + 1) for i in indices)
        return f"{code} + np.zeros(({sizes},))"

    def moved(self, name: str) -> list[str]:
        """Return the lines that compute the slope of one variable, part by part if it has several equations."""
        parts = [e for e in self.statement.equations if key_of(e.target) == name]
        if len(parts) == 1 and all(i.lower == 0 for i in indices_of(parts[0].target)):
            code = self.code.expr(parts[0].rate, tuple(indices_of(parts[0].target)))
            return [wrapped(f"d_{name} = {code} + np.zeros_like({name})")]
        lines = [f"    d_{name} = np.zeros_like({name})"]
        for e in parts:
            place = self.code.entry(e.target)[0].removeprefix(name) or "[:]"
            lines.append(wrapped(f"d_{name}{place} = {self.code.expr(e.rate, tuple(indices_of(e.target)))}"))
        return lines

    def bare(self) -> list[Any]:
        """Return indices that occur as numbers in a formula, not only as places of an array."""
        indices: set[Any] = set()

        def visit(x: Any) -> None:
            if isinstance(x, sp.Idx):
                indices.add(x)
            elif isinstance(x, (sp.Sum, sp.Product)):
                visit(x.function)
            elif isinstance(x, Largest):
                visit(x.args[0])
            elif isinstance(x, sp.Indexed):
                for i in x.indices:
                    if not isinstance(i, sp.Idx):
                        visit(i)
            else:
                for a in x.args:
                    visit(a)

        for d in self.statement.arrays:
            values = d.value if isinstance(d.value, tuple) else (d.value,)
            for v in values if d not in self.fixed and d.rule is None else ():
                visit(sp.sympify(v))
        for e in self.statement.equations:
            visit(e.rate)
        return sorted(indices, key=str)

    # -- example
    def example(self) -> str:
        """Return code that integrates (or iterates) from an initial state and prints when watched entries pass a
        level.
        """
        e = self.statement.example
        if e is None:
            return ""
        template = templates.RECURSION if self.statement.kind == "recursion" else templates.FLOW
        step = "1.0" if self.statement.step in (1, None) else f"p.{self.statement.step.name}"
        return template.format(
            watched=e.watched, level=e.level, until=e.until, start=textwrap.indent(e.code, "    "), names=self.taken(),
            step=step,
        )  # fmt: skip


def of_rates(statement: Statement) -> Statement:
    """Return the statement without observables, and without arrays that its kernels and right-hand side do not use."""
    values = [*(e.rate for e in statement.equations), *(v for k in statement.kernels for v in k.values.values())]
    names = frozenset().union(*(names_in(sp.sympify(v)) for v in values))
    read: list[Any] = []
    for d in reversed(statement.definitions):
        if isinstance(d, Definition) and not names & {key_of(t) for t in d.targets}:
            continue
        read.insert(0, d)
        if isinstance(d, Definition):
            parts = d.value if isinstance(d.value, tuple) else (d.value,)
            names |= frozenset().union(*(names_in(sp.sympify(v)) for v in parts))
    return dataclasses.replace(statement, definitions=tuple(read), watched=())


def page(statement: Statement) -> str:
    """The page of a statement as a Python file."""
    return Python(of_rates(statement)).page()
