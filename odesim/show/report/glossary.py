"""What the words of the page mean: answers, laws and rungs, in one sentence each."""

ANSWERED = {
    "confirmed": "The whole 95 % interval lies within the margin of the claim, or every exact case does.",
    "consistent": "A bound is obeyed with room to spare: not contradicted, and a stronger bound would have been obeyed "
    "too.",
    "refuted": "The whole 99 % interval lies outside the margin, or an exact case does by more than its numerical "
    "error.",
    "inconclusive": "Open: too few runs, too wide an interval, still drifting, a missing package, or more effort is "
    "needed.",
}
LAWS = {
    "Vanishes": "a discrepancy that vanishes within a numerical tolerance, in every case",
    "Proven": "a fact that holds or does not, in every case",
    "Agrees": "z-scores of a Monte Carlo mean, in every case",
    "Equals": "a value: every case if exact, otherwise the t interval of the runs at every point",
    "Bounded": "a bound, a sign or an order, in every case; confirmed where one comes close",
    "Mean": "a bound on the mean over runs, by its t interval at every point",
    "Premise": "what a claim supposes, in one case or more of every point; where it is not, the claim stays open",
    "Probability": "an event per run, by its Clopper-Pearson interval",
    "Power": "an exponent or its bound: the limit of local exponents if exact, otherwise one slope a run and their t "
    "interval",
    "All": "several of these, of which the weakest decides and which share the doubt",
}
RUNGS = {
    1: ("identity", "an identity holds exactly, in symbols or in rational numbers"),
    2: ("expectation", "a closed mean equals quadrature or Monte Carlo"),
    3: ("back ends", "numba and JAX compute the same right-hand side"),
    4: ("integrators", "solvers that share no code give the same trajectory"),
    5: ("invariants", "what the flow conserves is conserved"),
    6: ("drift", "the mean of one SGD step of the model is the right-hand side"),
    7: ("trajectory", "SGD of the model follows the flow over the whole run"),
    8: ("law", "a measured dependence on a size has the claimed form"),
    9: ("control", "a broken twin of the claim is refuted by the same code"),
}
"""The rungs of the ladder of evidence by number: name and meaning."""
FIELDS = {
    "claimed": "the predicted value or bound, with the margin that still confirms it; the margin comes from the "
    "statement, the next order or the numerical error, never from the result",
    "refuted by": "the finding that would refute the claim, made of its law and margin",
    "found": "the estimate of the deciding part, with its 95 % interval or the range of its cases",
    "slack": "how far a bound is from being touched",
    "sensitivity": "a deviation from the claim at which a measurement of this design loses its answer in nine of ten "
    "repetitions",
    "rivals": "other laws that were fitted to the same samples; rejected ones do not fit",
    "identity": "the measurement follows from the construction (the generator of the data, the definition of a "
    "parameter): it checks our code and confirms nothing of the paper",
    "expected": "the answer that the claim had when it was written; another one is marked",
}
WEIGHTS = ("theorem", "lemma", "printed", "stated", "finding", "generated", "other")
TITLES = {
    "refuted": "Refuted",
    "theorem": "Theorems, propositions, corollaries",
    "lemma": "Lemmas",
    "printed": "Claims that the source prints",
    "stated": "Claims derived by the author of the declaration",
    "finding": "Findings of our own",
    "generated": "Tests of the derivation, generated for every declared model",
    "other": "Definitions, equations, figures and the rest",
}
"""Titles of the groups of claims in the order of the page."""
