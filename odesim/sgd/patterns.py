"""Training on pattern data: replicas with weights in d dimensions, or only in the coordinates of the signals."""

import functools
import importlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from derivations.alphabet.patterns import Counting, Examples, PatternModel, Weights
from derivations.contract import Initial, load
from odesim.errors import UsageError
from odesim.machine import streams
from odesim.machine.processes import in_threads
from odesim.sgd import light, pattern_loops
from odesim.sgd.bind import ERF

if TYPE_CHECKING:
    from odesim.code.module_cache import TypedFunction

ROLES = ("dispatch", "coefficients", "losses")
"""Functions of a model that the passes call."""
PASSES = (
    "flipped", "products", "router_fields", "filter_fields", "collect_dense", "collect", "add", "route", "descend",
    "descend_counted",
)  # fmt: skip
"""Functions of `odesim.sgd.pattern_loops`, in the order in which they call each other."""
PART = 4096
"""Number of examples that one thread sums."""


class Passes:
    """The passes over a batch, compiled with the functions of a model, from the cache if possible.

    The types of the arguments are the same in every step, so that each pass is looked up once.
    """

    def __init__(self, model: PatternModel, numbers: tuple[Any, ...]) -> None:
        self.model, self.numbers = model, numbers
        self._compiled: dict[str, Callable[..., Any]] = {}

    def call(self, name: str, *arguments: Any) -> Any:
        """Call one of the `PASSES` with the model's numbers as the last argument."""
        function = self._compiled.get(name)
        if function is None:
            typed = functions_of(self.model)[name]
            function = self._compiled.setdefault(name, typed.compiled_for(*arguments, self.numbers))
        return function(*arguments, self.numbers)

    def descend(
        self, weights: Any, examples: Any, expert: np.ndarray, margin: np.ndarray, block: int
    ) -> tuple[Any, ...]:
        """Return minus the mean gradients of filters, biases and routers over a batch, and its mean loss.

        Fills `expert` and `margin` (B,). Threads route and sum the batch in parts of `PART` examples. The result does
        not depend on the number of threads.
        """
        (filters, bias, routers, frame), examples = _plain(weights), _plain(examples, np.int64)
        (atoms, amplitudes, dense, total, labels, noise), count, experts = examples, expert.size, len(filters)
        examples = (atoms, amplitudes, dense, total if dense.shape[1] else np.empty((count, 0)), labels, noise)
        parts = [(first, min(first + PART, count)) for first in range(0, count, PART)]
        logits, router_table = np.empty((experts, count)), routers @ frame.T

        def routed(part: tuple[int, int]) -> None:
            self.call("route", routers, router_table, examples, part, logits, expert)

        in_threads(routed, parts)
        sizes = np.bincount(expert, minlength=experts)
        # For the shortest possible integers NumPy uses a radix sort, which keeps the order of examples.
        members = np.argsort(expert.astype(np.min_scalar_type(experts)), kind="stable")
        routing = (logits, members, np.append(0, np.cumsum(sizes)), sizes / count, margin)
        given = (filters, bias, np.ascontiguousarray(filters @ frame.T))

        def summed(part: tuple[int, int]) -> tuple[Any, ...]:
            return self.call("descend", given, examples, routing, part, block)

        found = zip(*in_threads(summed, parts), strict=True)
        G, g, along, R, router_along, loss = (sum(one[1:], one[0]) / count for one in found)
        return G + along @ frame, g, R + router_along @ frame, loss

    def descend_counted(
        self, weights: Any, configurations: Any, logits: np.ndarray, counts: np.ndarray
    ) -> tuple[Any, ...]:
        """`pattern_loops.descend_counted`."""
        (logits,), (counts,) = _plain((logits,)), _plain((counts,), np.int64)
        return self.call("descend_counted", _plain(weights), _plain(configurations, np.int64), logits, counts)


@functools.lru_cache(maxsize=16)
def functions_of(model: PatternModel) -> dict[str, "TypedFunction"]:
    """Return the passes for a model, by name."""
    from odesim.code import compile

    module = importlib.import_module(model.module)
    own = [light.lightened(source_of(module, name)) for name in (*model.helpers, *ROLES)]
    loops = [source_of(pattern_loops, name) for name in PASSES]
    text = compile.numba_module(model.module, [ERF, *light.SOURCES, *own, *loops])
    return compile.functions_of(f"patterns_{model.module.replace('.', '_')}", text, PASSES)


def source_of(owner: Any, name: str) -> str:
    """Return the text of a function of a module."""
    return inspect.getsource(inspect.unwrap(getattr(owner, name)))


def _plain(arrays: Sequence[np.ndarray], first: Any = np.float64) -> tuple[np.ndarray, ...]:
    """Convert arrays to the types of the passes: the first unchanged, the others floating point, all writeable."""
    kinds = (first, *(np.float64 for _ in arrays[1:]))
    return tuple(
        array if array.dtype == kind and array.flags.carray else np.require(array, kind, ["C", "W"])
        for array, kind in zip(arrays, kinds, strict=True)
    )


def sample(model: PatternModel, parameters: Any, rng: np.random.Generator, count: int, width: int) -> Examples:
    """Return `count` fresh examples with dense patches in `width` dimensions."""
    functions, numbers = importlib.import_module(model.module), model.numbers(parameters)
    atoms, amplitudes, labels, cluster = functions.draw(rng.random((model.uniforms, count)), *numbers)
    patches, size = model.noisy(parameters)
    dense = size * rng.standard_normal((count, patches, width))
    return Examples(atoms, amplitudes, dense, labels, cluster)


def frame_width(weights: Weights) -> int:
    """Return the dimension of the weights."""
    return weights.filters.shape[2]


def training_set(
    model: PatternModel, parameters: Any, arrays: Mapping[str, np.ndarray] | None, batch: int, width: int, own: int = 0
) -> Examples | None:
    """Return the fixed training set: that of the file, or drawn from the data seed; None for fresh data in every step.

    `own` is the number of the replica that the set belongs to, or 0 for a common set.
    """
    plan = model.plan(parameters)
    if plan.fresh:
        return None
    examples = model.given(parameters, arrays)
    if examples is None:
        number = (own,) if own else ()
        rng = streams.generator(plan.seed, "data", *number)
        examples = sample(model, parameters, rng, plan.count or batch, width)
    if batch > len(examples):
        raise UsageError(
            f"--batch {batch} is more than the {len(examples)} examples of the fixed training set: give --batch "
            f"{len(examples)} for full batches, or -p data=online for fresh examples"
        )
    return examples


def examples_because(model: PatternModel, parameters: Any, batch: int) -> str:
    """Return the reason why compressed batches are drawn example by example, or "" if they are counted."""
    if not model.counting:
        return "this model has no finite list of configurations"
    counting: Counting = load(model.counting)
    reason = counting.obstacle(parameters)
    if reason:
        return reason
    count = len(counting.configurations(parameters)[0])
    return f"a batch of {batch} is smaller than the {count} configurations" if batch < count else ""


def entries(model: PatternModel, initial: Initial, simulation: Any) -> int:
    """Return the number of stored numbers of a run: dense examples and weights.  Counted batches have no examples."""
    p, s = initial.parameters, model.sizes(initial)
    plan, compressed = model.plan(p), simulation.method == "compressed"
    width = s.frame if compressed else s.width
    counted = compressed and simulation.case.backend == "numba" and not examples_because(model, p, simulation.batch)
    drawn = 0 if counted and plan.fresh else max(plan.count, simulation.batch)
    examples = (drawn + plan.tests) * (3 * model.noisy(p)[0] * width + 2 * s.experts + 8)
    return examples + 6 * simulation.replicas * s.experts * (s.neurons + 1) * width


def descent(
    model: PatternModel, initial: Initial, batch: int, repeats: int, rng: np.random.Generator, fresh: bool
) -> np.ndarray:
    """Return minus the mean gradients over drawn batches in the frame (repeats, M, J + 1, F): filters, then the router.

    Every repeat draws its routing noise. For models whose patches are all atoms of the frame.
    """
    p = initial.parameters
    engine = PatternChains(model, [initial], None, compressed=True, batch=1, step_size=1.0, seed=0)
    weights, found = engine.weights[0], []
    examples = sample(model, p, rng, batch, weights.filters.shape[2])
    for _ in range(repeats):
        if fresh:
            examples = sample(model, p, rng, batch, weights.filters.shape[2])
        noise = rng.random((len(weights.routers), batch))
        filters, _, routers, *_ = engine.pass_over(weights, examples, examples.dense.sum(axis=1), noise)
        found.append(np.concatenate([filters, routers[:, None]], axis=1))
    return np.array(found)


class PatternChains:
    """Replicas of one training run, each with its own weights and random numbers; the numba engine."""

    batches = ""
    """Return the method by which batches are made, if there is a choice."""

    def __init__(
        self, model: PatternModel, initials: list[Initial], arrays: Mapping[str, np.ndarray] | None, *,
        compressed: bool, batch: int, step_size: float, seed: int,
    ) -> None:  # fmt: skip
        p = initials[0].parameters
        self.model, self.parameters, self.batch, self.step_size = model, p, batch, step_size
        self.numbers, self.plan = model.numbers(p), model.plan(p)
        self.compiled = Passes(model, self.numbers)
        self.functions = importlib.import_module(model.module)
        self.weights = [
            model.place(initial, arrays, streams.generator(seed, "rest", k), compressed)
            for k, initial in enumerate(initials)
        ]
        width = frame_width(self.weights[0])
        sets = len(initials) if self.plan.own else 1
        self.sets = [training_set(model, p, arrays, batch, width, k) for k in range(sets)]
        self.totals = [None if e is None else e.dense.sum(axis=1) for e in self.sets]
        self.noise = None if arrays is None or "noise" not in arrays else np.array(arrays["noise"], float)
        self.beyond = not compressed
        self.experts = len(self.weights[0].routers)
        self.test = sample(model, p, streams.generator(self.plan.seed, "test"), self.plan.tests, width)
        self.test_noise = streams.generator(self.plan.seed, "test noise").random((self.experts, self.plan.tests))
        self.rngs = [streams.generator(seed, "samples", k) for k in range(len(initials))]
        self.best, self.stopped = np.full(len(initials), np.inf), np.full(len(initials), -1)
        self.steps = 0

    def advance(self, steps: int) -> bool:
        """Take steps in every replica. Return False if a weight is no longer finite. An interruption restores the state
        before.
        """
        before = self.state()
        try:
            for k in range(len(self.weights)):
                for step in range(steps):
                    if self.stopped[k] < 0:
                        self._step(k, self.steps + step)
        except BaseException:
            self.restore(before)
            raise
        self.steps += steps
        return all(np.isfinite(w.filters).all() and np.isfinite(w.routers).all() for w in self.weights)

    @property
    def training(self) -> Examples | None:
        """Training set of the first replica, which all replicas share unless each has its own."""
        return self.sets[0]

    @property
    def total(self) -> np.ndarray | None:
        """Sums of its dense patches."""
        return self.totals[0]

    def own(self, k: int) -> tuple[Examples | None, np.ndarray | None]:
        """Return the training set of a replica and the sums of its dense patches; None for fresh examples."""
        which = k if len(self.sets) > 1 else 0
        return self.sets[which], self.totals[which]

    def _batch(self, k: int) -> tuple[Examples, np.ndarray]:
        """Return the examples of a replica's next step, and the sums of their dense patches."""
        rng, (training, total) = self.rngs[k], self.own(k)
        if training is None or total is None:
            fresh = sample(self.model, self.parameters, rng, self.batch, frame_width(self.weights[k]))
            return fresh, fresh.dense.sum(axis=1)
        if self.batch == len(training):
            return training, total
        index = rng.choice(len(training), self.batch, replace=False)
        return training.take(index), total[index]

    def descent(self, k: int, step: int = 0) -> tuple[Any, ...]:
        """Return minus the mean gradients (filters, bias, routers) and the loss of a replica on its own batch."""
        examples, total = self._batch(k)
        shape = (self.experts, len(examples))
        if self.noise is not None:
            noise = np.ascontiguousarray(self.noise[step])
        else:
            noise = self.rngs[k].random(shape) if self.plan.noise else np.zeros(shape)
        return self.pass_over(self.weights[k], examples, total, noise)[:4]

    def _step(self, k: int, step: int) -> None:
        w = self.weights[k]
        filters, bias, routers, loss = self.descent(k, step)
        if self.plan.stops:
            if bool(self.functions.halt(loss, self.best[k], *self.numbers)):
                self.stopped[k] = step
                return
            self.best[k] = min(self.best[k], loss)
        squares = (filters**2).sum((1, 2)), (bias**2).sum(1)
        rate, bias_rate, router_rate = self.functions.rates(*squares, *self.numbers)
        move, bias_move = self.step_size * rate, self.step_size * bias_rate
        self.weights[k] = Weights(
            w.filters + move[:, None, None] * filters,
            w.bias + bias_move[:, None] * bias if self.plan.biased else w.bias,
            w.routers + self.step_size * router_rate * routers,
            w.frame,
        )

    def pass_over(self, w: Weights, examples: Examples, total: np.ndarray, noise: np.ndarray) -> tuple[Any, ...]:
        """Return minus the mean gradients (filters, bias, routers), the loss, and expert and margin of every
        example.
        """
        expert, margin = np.empty(len(examples), np.int64), np.empty(len(examples))
        weights = (w.filters, w.bias, w.routers, w.frame)
        given = (examples.atoms, examples.amplitudes, examples.dense, total, examples.labels, noise)
        found = self.compiled.descend(weights, given, expert, margin, pattern_loops.BLOCK)
        return (*found, expert, margin)

    def saved(self) -> np.ndarray:
        """Return the saved variables (R, size): overlaps, dispatch and scalars, for `observe` of the model."""
        return np.array([self._measure(k, w) for k, w in enumerate(self.weights)])

    grams = saved

    def _measure(self, replica: int, w: Weights) -> np.ndarray:
        total = self.test.dense.sum(axis=1)
        silent = np.zeros_like(self.test_noise)
        *_, loss, expert, margin = self.pass_over(w, self.test, total, silent)
        *_, noisy_expert, noisy_margin = self.pass_over(w, self.test, total, self.test_noise)
        sure = self.dispatch(self.test.cluster, expert)
        noisy = self.dispatch(self.test.cluster, noisy_expert)
        trained = self.on_training(replica, w) or (loss, (margin > 0).mean(), entropy(sure))
        inside, routers = w.filters @ w.frame.T, w.routers @ w.frame.T
        scalars = [entropy(sure), (margin > 0).mean(), entropy(noisy), (noisy_margin > 0).mean(), *trained]
        parts = [inside, routers, noisy, np.array(scalars)]
        if self.beyond:  # in the coordinates of the frame no other variables exist
            pairs = ((w.filters, inside), (w.routers, routers))
            parts += [np.linalg.norm(whole - along @ w.frame, axis=-1) for whole, along in pairs]
        return np.concatenate([np.ravel(part) for part in parts])

    def dispatch(self, cluster: np.ndarray, expert: np.ndarray, share: Any = None) -> np.ndarray:
        """Return the share of examples by cluster and expert (K, M). Each example counts for `share`, by default
        equally.
        """
        table = np.zeros((self.plan.clusters, self.experts))
        np.add.at(table, (cluster, expert), 1 / cluster.size if share is None else share)
        return table

    def on_training(self, replica: int, w: Weights) -> tuple[float, float, float] | None:
        """Return loss, accuracy and dispatch entropy on the fixed training set without routing noise; None for fresh
        data.
        """
        training, total = self.own(replica)
        if training is None or total is None:
            return None
        silent = np.zeros((self.experts, len(training)))
        *_, loss, expert, margin = self.pass_over(w, training, total, silent)
        return loss, float((margin > 0).mean()), entropy(self.dispatch(training.cluster, expert))

    def state(self) -> dict[str, np.ndarray]:
        """Return weights, generators and step count."""
        return {
            **{n: np.array([getattr(w, n) for w in self.weights]) for n in ("filters", "bias", "routers")},
            "generators": np.array([json.dumps(rng.bit_generator.state) for rng in self.rngs]),
            "best": self.best.copy(),
            "stopped": self.stopped.copy(),
            "steps": np.array(self.steps),
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore a stored state."""
        parts = zip(arrays["filters"], arrays["bias"], arrays["routers"], self.weights, strict=True)
        whole = np.ascontiguousarray
        self.weights = [Weights(whole(a), whole(b), whole(c), w.frame) for a, b, c, w in parts]
        for rng, generator in zip(self.rngs, arrays["generators"], strict=True):
            rng.bit_generator.state = json.loads(str(generator))
        self.best, self.stopped = arrays["best"].copy(), arrays["stopped"].copy()
        self.steps = int(arrays["steps"])


def entropy(counts: np.ndarray) -> float:
    """Return the dispatch entropy: the load of each expert times the entropy of its clusters."""
    load = counts.sum(axis=0)
    share = counts / np.where(load > 0, load, 1.0)
    return float((counts * np.log(1 / np.where(share > 0, share, 1.0))).sum())
