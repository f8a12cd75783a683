"""Display of results in notebooks: tables, and access to functions of higher packages that draw, store and continue.

Some methods of a result need packages that build on results (pictures, folders, later stages). These are imported when
such a method is called, so that a result itself only needs arrays.
"""

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from derivations.contract import load

VIEWS = {
    "answer": "odesim.show.notebook:answer",
    "answer_pictures": "odesim.show.answers:figures",
    "check": "odesim.show.notebook:check",
    "picture": "odesim.show.notebook:picture",
    "plot": "odesim.show.notebook:plot",
    "pictures": "odesim.show.notebook:pictures",
    "frame": "odesim.show.notebook:frame",
    "table": "odesim.show.notebook:table",
    "save": "odesim.public.keep:save",
    "integrate": "odesim.public.make:integrate",
    "explore": "odesim.public.keep:explore",
    "values": "odesim.study.interpolation:values_at",
}
"""Functions that show, store and continue results."""


def load_view(name: str) -> Any:
    """Return the function that shows, stores or continues a result."""
    return load(VIEWS[name])


def table_html(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table as HTML; all of its text is escaped.

    >>> table_html(["a"], [["<b>"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """

    def line(cells: Sequence[Any], kind: str) -> str:
        return "<tr>" + "".join(f"<{kind}>{html.escape(said(cell))}</{kind}>" for cell in cells) + "</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table><thead>{line(header, 'th')}</thead><tbody>{body}</tbody></table>"


def table_text(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table with aligned columns, the header first.

    >>> table_text(["name", "n"], [["erf", "10"]])
    ['name  n', 'erf   10']
    """
    lines = [header, *rows]
    widths = [max(len(line[k]) for line in lines) for k in range(len(header))]
    return ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines]


def name_of(name: object) -> Any:
    """Return a name as text; a SymPy symbol is replaced by its name."""
    return getattr(name, "name", name) if getattr(name, "is_Symbol", False) else name


def said(value: Any, most: int = 120) -> str:
    """Return a value as short text: six digits, long lists and texts shortened."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return said(", ".join(f"{name}: {said(item)}" for name, item in value.items()), most)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(said, value[:4])) + (", ..]" if len(value) > 4 else "]")
    text = "-" if value is None else str(value)
    return text if len(text) <= most else f"{text[: most - 2]}.."


class Stored:
    """Base class of all results that a folder can store: runs, comparisons and answers."""

    def save(self, folder: Any, *, overwrite: bool = False, pictures: bool = True) -> Any:
        """Store the result in a folder that `load` and every command can read, like `odesim.save`.

        Arguments:
            folder: The folder; missing parent folders are created.
            overwrite: Replace a finished folder.
            pictures: Also draw the pictures.

        Returns:
            The path of the folder.

        Raises:
            UsageError: The folder is finished already, or in use.
        """
        return load_view("save")(self, folder, overwrite=overwrite, pictures=pictures)


class Result(Stored):
    """Base class of runs, stored runs and comparisons: display and storage."""

    def plot(self, name: Any = None, *, ax: Any = None) -> Any:
        """Draw a variable against time. Replicas of SGD have one colour, and the first is thick.

        A comparison draws a component of both runs: the first as a line, the replicas of the second as lines or, for
        ten or more, as their median and their 10 to 90 % range.

        Arguments:
            name: The variable, by name or SymPy symbol; by default the component with the largest change.
            ax: Axes of matplotlib; by default those of a new figure. In narrow axes the legend is inside.

        Returns:
            The axes.

        Raises:
            UsageError: The name is not that of a time-dependent variable.
        """
        return load_view("plot")(self, name_of(name), ax)

    def pictures(self) -> Mapping[str, Any]:
        """Return the pictures of the run, as in its folder.

        Returns:
            Figures of matplotlib by name, with titles and with the theory next to the run.
        """
        return load_view("pictures")(self)

    def to_pandas(self) -> Any:
        """Return the run as a table of pandas.

        Returns:
            A `pandas.DataFrame` with a row for every time (and seed) and a column such as "gamma2[1,2]" per entry.

        Raises:
            MissingError: pandas is not installed.
        """
        return load_view("table")(self)

    def explore(self, out: Any = "explore.html", *, overwrite: bool = False) -> Any:
        """Write the result as an interactive page, as `odesim.explore` does.

        Arguments:
            out: Path of the page.
            overwrite: Replace an existing page.

        Returns:
            The path of the page.

        Raises:
            UsageError: The page exists already.
            MissingError: plotly is not installed.
        """
        return load_view("explore")(self, out, overwrite=overwrite)

    def _repr_html_(self) -> str:
        """Return a few lines, the variables, the summary and a picture."""
        return load_view("picture")(self)


class RunMapping(Result):
    """Base class of trajectories and stored runs: a mapping of names to arrays, with states at any time."""

    def keys(self) -> list[str]:
        """Return the names of all variables."""
        raise NotImplementedError

    def __getitem__(self, name: Any) -> Any:
        """Return the values of a variable by name, or by a SymPy symbol of that name."""
        raise NotImplementedError

    def __contains__(self, name: object) -> bool:
        """Return True for the name of a variable, as accepted by `run[name]`."""
        return name_of(name) in self.keys()

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of all variables, as a mapping or an `xarray.Dataset` does."""
        return iter(self.keys())

    def __len__(self) -> int:
        """Return the number of variables."""
        return len(self.keys())

    def values(self) -> list[Any]:
        """Return the arrays of all variables.

        Returns:
            A list in the order of `keys()`.
        """
        return [self[name] for name in self.keys()]

    def items(self) -> list[tuple[str, Any]]:
        """Return names and arrays of all variables, as a mapping does.

        Returns:
            A list of pairs.
        """
        return [(name, self[name]) for name in self.keys()]

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the system by name, with the defaults of the parameters that the user did not give."""
        own: Any = getattr(self, "trajectory", self)
        return dict(own.origin.parameters)

    def __call__(self, time: Any) -> dict[str, Any]:
        """Return components and observables at a time of the run, or at an array of times, by name.

        Between two saved times a flow is integrated again with the tolerances of the run, so that the accuracy does not
        depend on the number of saved states (`odesim.study.interpolation.values_at`).

        Arguments:
            time: A number or an array (n,), in the unit of the run's clock.

        Returns:
            "time" and every variable with a time axis: without that axis for a number, with n entries on it for an
            array.

        Raises:
            UsageError: The time is outside of the run, or SGD or a recursion has no state at this time.

        Example:
            >>> import odesim
            >>> run = odesim.integrate("liao", m=3, m_star=1, d=100, until=1.0, seed=0)
            >>> run(0.123)["gamma2"].shape, run([0.1, 0.2])["gamma2"].shape
            ((3, 1), (2, 3, 1))
        """
        return load_view("values")(getattr(self, "trajectory", self), time)

    def continue_(self, until: Any = None, *, stage: str | None = None, **request: Any) -> Any:
        """Continue the integration from the end of this run, in its stage or in another.

        Arguments:
            until: A later time on the clock of the run.
            stage: The stage; by default that of the run.
            request: Options and parameters of `odesim.integrate`, such as `save_at`.

        Returns:
            The trajectory of the continued run.

        Raises:
            UsageError: `until` is not later than the end of the run, or the run has several replicas of SGD.

        Example:
            >>> import odesim
            >>> run = odesim.integrate("liao", m=3, m_star=1, d=100, until=1.0, seed=0)
            >>> later = run.continue_(until=2.0)
            >>> [float(t) for t in later.time[[0, -1]]]
            [1.0, 2.0]
        """
        own: Any = getattr(self, "trajectory", self)
        return load_view("integrate")(after=self, stage=stage or own.origin.stage, until=until, **request)[0]
