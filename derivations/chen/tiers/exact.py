"""Tier p3: the population flow for three patches, closed on the overlaps with the 2 K signals.

The derivation, step by step:

1. With P = 3 every patch is a signal, so gradients lie in the span of the features v_k and centres c_k, and the
   overlaps feat, cen (M, J, K), gcen, gfeat (M, K) are a closed state; weights orthogonal to the signals are constant.
2. For an example (k, k', y, eps, alpha, beta, gamma) the filters' fields are y alpha feat_k, beta cen_k and
   eps gamma feat_k', the logits y alpha gfeat_k + beta gcen_k + eps gamma gfeat_k'  (Definition 3.1, equation (3.1)).
3. The mean over the routing noise replaces 1(m_i = m) by p_m(h) (`route`), with the multiplier l' of the chosen expert
   (Lemma E.2, corrected): G_m = p_m q(y pi_m f_m) pi_m y.
4. The mean over examples is a sum over pairs, signs and Gauss-Legendre nodes of the three laws.
5. Experts move with their gradient divided by its Frobenius norm, routers rho times theirs (equation (3.4)).

Normalised descent is discontinuous at a zero of an expert's mean gradient, along which the flow can slide. Within the
layer |E g| < layer E|g| the speed decreases linearly to zero, which gives the sliding solution up to O(layer). Outside
of it the right-hand side is exact. An expert without examples has no gradient and does not move.
"""

import dataclasses
from typing import Any

import numpy as np

from derivations.chen.parameters import Parameters
from derivations.chen.summary import constants as saved_constants
from derivations.chen.summary import summarise
from derivations.chen.tiers.example_types import (
    ALONG_CEN,
    ALONG_FEAT,
    AT,
    CROSSINGS,
    DRIFT,
    G_CEN,
    G_FEAT,
    LOOPS,
    LOSSES,
    NORM,
    SOURCE,
    SPEED,
    STATE,
    SURE,
    WEIGH,
    along_signal,
    example,
    examples,
    fills,
    invariants,
    largest,
    slope,
    speed,
    symbols,
    watched,
    weigh,
)
from derivations.chen.tiers.vocabulary import (
    CEN,
    CLOCK,
    COST,
    FEAT,
    GCEN,
    GFEAT,
    J_SIZE,
    K_SIZE,
    LAYER,
    M_SIZE,
    NOTATION,
    PAPER,
    RHO,
    UNITARY,
    E,
    J,
    K,
    L,
    M,
    Q,
    act,
    law,
    nodes_of,
    power_constant,
)
from derivations.contract import Initial, Observables, Smooth
from derivations.indexed import nested
from derivations.statement import Base, Definition, Equation, Indicator, Named, Shortcut, Statement, sp

KINKS = {
    name: f"; {name} has kinks inside of steps: a small alignment had an error of 70 tolerances at a relative "
    "tolerance of 1e-10 and 2 nodes (160 with --solver DOP853), by 15 at 1e-8"
    for name in ("relu", "celu")
}
FINE = 12
"""Nodes of each distribution for accuracy and entropy without noise: indicators converge slowly, and cost little
here.
"""
LAWS = {"a": "alpha", "b": "beta", "c": "gamma"}


@dataclasses.dataclass(frozen=True)
class Nodes:
    """Sizes, indices, nodes and weights of the three distributions, and the labels at the nodes of the feature."""

    tag: str
    letters: str

    def size(self, short: str) -> Any:
        """The number of nodes of a law."""
        return sp.Symbol(f"n_{short}{self.tag}", integer=True, positive=True)

    @property
    def indices(self) -> tuple[Any, ...]:
        """The indices of the nodes of alpha, beta and gamma."""
        return tuple(sp.Idx(letter, self.size(short)) for letter, short in zip(self.letters, LAWS, strict=True))

    @property
    def places(self) -> tuple[Any, ...]:
        """The indices of an example type: two clusters, and the nodes."""
        return (K, E, *self.indices)

    @property
    def strengths(self) -> tuple[Any, ...]:
        """The nodes of the laws at their indices."""
        return tuple(Base(f"x_{short}{self.tag}")[i] for short, i in zip(LAWS, self.indices, strict=True))

    @property
    def weights(self) -> tuple[Any, ...]:
        """The weights of the nodes."""
        return tuple(Base(f"w_{short}{self.tag}")[i] for short, i in zip(LAWS, self.indices, strict=True))

    @property
    def label(self) -> Any:
        """The label at the nodes of the feature."""
        return Base(f"label{self.tag}")[self.indices[0]]

    @property
    def signals(self) -> dict[str, tuple[Any, Any, Any]]:
        """Along the feature, the centre and the noise: overlaps of filters, the node, and its index."""
        rows = FEAT[M, J, K], CEN[M, J, K], FEAT[M, J, E]
        shorts = (short + self.tag for short in LAWS)
        return dict(zip(shorts, zip(rows, self.strengths, self.indices, strict=True), strict=True))

    def array(self, name: str) -> Any:
        """An array for these nodes."""
        return Base(f"{name}{self.tag}")

    def tables(self, name: str) -> tuple[Any, Any, Any]:
        """The entries of the tables along the three signals."""
        i, n, r = self.indices
        a, b, c = (Base(f"{name}_{short}") for short in self.signals)
        return a[M, K, i], b[M, K, n], c[M, E, r]


COARSE, FINER = Nodes("", "inr"), Nodes("_f", "ost")
CHANCE = Base("chance")


def fields(nodes: Nodes) -> list[Definition]:
    """Definitions of the tables along signals, logits, outputs and chances of example types."""
    found = [d for name, (rows, x, i) in nodes.signals.items() for d in along_signal(name, rows, x, (i,))]
    a, b, c = nodes.strengths
    at = (M, *nodes.places)
    pair = Indicator(sp.Ne(K, E)) / (K_SIZE * (K_SIZE - 1))
    logits = a * GFEAT[M, K] + b * GCEN[M, K] + c * GFEAT[M, E]
    return [
        *found,
        Definition((nodes.array("h")[at],), logits, "logits"),
        Definition((nodes.array("f")[at],), sp.Add(*nodes.tables("F")), "outputs of the experts"),
        Definition((nodes.array("chance")[nodes.places],), pair * sp.Mul(*nodes.weights), "chance of an example type"),
    ]


def of_types() -> list[Definition]:
    """Definitions over all example types, and the loops that fill their sums."""
    at, label = (M, *COARSE.places), COARSE.label
    pushes = tuple(Base(f"G_{short}") for short in LAWS)
    i, n, r = COARSE.indices
    sums = pushes[0][M, K, i], pushes[1][M, K, n], pushes[2][M, E, r]
    given = (GFEAT, GCEN, *COARSE.tables("F"), *COARSE.tables("S"), *COARSE.strengths, *COARSE.weights, label)
    loops = Shortcut(f"{LOOPS}sum_over_nodes", given, fills(*sums), (2, 3, 3, 3, 4, 3, 3, 3))
    weight = WEIGH[at]
    return [
        Definition((NORM[at],), sp.Add(*COARSE.tables("S")), "squared size of a gradient over G"),
        *weigh(COARSE.places, CHANCE[COARSE.places], label, loops),
        *routers(),
        Definition((sums[0],), nested(weight, E, n, r), "weights of types with one strength of the feature"),
        Definition((sums[1],), nested(weight, E, i, r), "of the centre"),
        Definition((sums[2],), nested(weight, K, i, n), "of the noise feature"),
    ]


def routers() -> list[Definition]:
    """Definitions of the routers' drifts."""
    i, n, r = COARSE.indices
    a, b, c = COARSE.strengths
    own, other = DRIFT[M, K, E, i, n, r], DRIFT[M, E, K, i, n, r]
    along = nested(own * a, E, i, n, r) + nested(other * c, E, i, n, r)
    return [
        Definition((ALONG_FEAT[M, K],), along, "drift of a router along a feature, as signal and as noise"),
        Definition((ALONG_CEN[M, K],), nested(own * b, E, i, n, r), "along a centre"),
    ]


def without_noise() -> list[Definition]:
    """Definitions of the dispatch without routing noise, at finer nodes."""
    label, places = FINER.label, FINER.places
    given = (GFEAT, GCEN, *FINER.tables("F"), *FINER.strengths, *FINER.weights, label)
    loops = Shortcut(f"{LOOPS}largest_over_nodes", given, (SURE[K, M],), (2, 3, 3, 4, 1, 1))
    chance = FINER.array("chance")[places]
    return [
        *(d for d in fields(FINER) if not d.targets[0].base.name.startswith("S_")),
        *largest(places, chance, label, FINER.array("h"), FINER.array("f"), loops),
    ]


def gradients() -> list[Definition]:
    """Definitions of the mean gradients of the filters, and of their normalisation."""
    a, b, c = (
        sp.Sum(Base(f"G_{name}")[M, K, i] * x * slope(x * rows), i)
        for name, rows, x, i in zip(
            LAWS, (FEAT[M, J, K], CEN[M, J, K], FEAT[M, J, K]), COARSE.strengths, COARSE.indices, strict=True
        )
    )
    return [
        Definition((G_FEAT[M, J, K],), a + c, "mean gradient along a feature"),
        Definition((G_CEN[M, J, K],), b, "mean gradient along a centre"),
        speed(nested(G_FEAT[M, J, K] ** 2 + G_CEN[M, J, K] ** 2, J, K)),
    ]


def equations() -> tuple[Equation, ...]:
    """Normalised descent of the experts, rho times descent of the router."""
    return (
        Equation(FEAT[M, J, K], SPEED[M] * G_FEAT[M, J, K], AT),
        Equation(CEN[M, J, K], SPEED[M] * G_CEN[M, J, K], AT),
        Equation(GCEN[M, K], RHO * ALONG_CEN[M, K], AT),
        Equation(GFEAT[M, K], RHO * ALONG_FEAT[M, K], AT),
    )


def fine(p: Parameters) -> int:
    """The number of nodes of a distribution without routing noise."""
    return max(FINE, p.nodes)


def constants(p: Parameters) -> tuple[Named, ...]:
    """Sizes, rates and the distributions of the strengths."""
    found = [
        Named(M_SIZE, "experts", 3),
        Named(J_SIZE, "filters of an expert", 4),
        Named(K_SIZE, "clusters", p.K),
        Named(RHO, "router step over expert step", p.rho),
        Named(LAYER, "coherence E g over E|g| below which an expert slows down", p.layer),
        *power_constant(p),
    ]
    for nodes, count in ((COARSE, p.nodes), (FINER, fine(p))):
        for (short, name), index in zip(LAWS.items(), nodes.indices, strict=True):
            found += nodes_of(p, name, short + nodes.tag, nodes.size(short), index, count, signed=short != "b")
        half = len(law(p, "alpha", count)[0])
        found.append(Named(nodes.label, "label: the sign of the feature", f"np.repeat([1.0, -1.0], {half})"))
    return tuple(found)


def bind(initial: Initial) -> dict[str, Any]:
    """The numbers of the constants in a run."""
    p = initial.parameters
    found = {"M": p.M, "J": p.J, "K": p.K, "rho": p.rho, "delta_c": p.layer, "power": p.power}
    for nodes, count in ((COARSE, p.nodes), (FINER, fine(p))):
        for short, name in LAWS.items():
            x, w = law(p, name, count, signed=short != "b")
            found |= {f"{letter}_{short}{nodes.tag}": v for letter, v in zip("nxw", (len(x), x, w), strict=True)}
        found[f"label{nodes.tag}"] = np.repeat([1.0, -1.0], found[f"n_a{nodes.tag}"] // 2)
    return found


def statement(p: Parameters, tier: str = "p3") -> Statement:
    """The exact population flow for three patches.  Source: Chen et al. 2022, Algorithm 1 and Lemma E.2."""
    missing = "nothing" if p.P == 3 else f"the {p.P - 3} noise patches (it is exact for P = 3; tier full has them)"
    strengths = ("strengths of the feature, with the label", "of the centre", "of the feature noise, with its sign")
    indices = [((M, L), "experts"), ((J,), "filters"), ((K, E), "clusters")]
    indices += [((i,), about) for i, about in zip(COARSE.indices, strengths, strict=True)]
    indices += [((i,), f"{about}, finer") for i, about in zip(FINER.indices, strengths, strict=True)]
    return Statement(
        tier=tier,
        name=f"chen, {tier}",
        title="population flow of a top-1 routed mixture of patch classifiers, three patches",
        source=f"{PAPER}, {SOURCE}",
        clock=CLOCK,
        validity=(
            "exact for P = 3 and any activation in the limit of many examples and a small step, if no expert's "
            f"gradient is incoherent (|E g| < {p.layer:g} E|g|); laws by {p.nodes} nodes "
            f"each{KINKS.get(p.activation, '')}"
        ),
        neglects=missing,
        indices=indices,
        sizes={"M": p.M, "J": p.J, "K": p.K},
        state=STATE,
        constants=constants(p),
        bind=bind,
        begin=lambda initial: {v.target.base.name: initial.state[v.target.base.name] for v in STATE},
        definitions=(*act(p), Q, COST, UNITARY, *fields(COARSE), *of_types(), *gradients(), *without_noise()),
        steps=examples(),
        equations=equations(),
        loss=sp.Sum(LOSSES[M], M),
        watched=watched(),
        crossings=CROSSINGS,
        observables=Observables(constants=saved_constants, invariants=invariants, summary=summarise),
        advance=Smooth(between="interpolant", kinks=True),
        notation={**NOTATION, **symbols(), **finer_symbols()},
        example=example("", 1.0),
    )


def finer_symbols() -> dict[str, tuple[str, str]]:
    """The symbols at the finer nodes: those of the coarse ones with a prime."""
    plain = {**NOTATION, **symbols()}
    names = [f"{x}_{short}" for x in "xwF" for short in LAWS] + ["label", "chance"]
    primed = {f"{name}{FINER.tag}": (f"{plain[name][0]}'", f"{plain[name][1]}′") for name in names}
    return primed | {f"{name}{FINER.tag}": (f"{name}'", f"{name}′") for name in ("h", "f", *(f"n_{x}" for x in LAWS))}
