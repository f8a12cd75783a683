"""Glossary of a report: answers, laws and kinds of evidence, in one sentence each."""

ANSWERED = {
    "confirmed": "The whole 95 % interval lies within the margin of the claim. For exact measurements, every case lies "
    "within the margin.",
    "consistent": "A bound is obeyed with room to spare, so that a stronger bound would have been obeyed too.",
    "refuted": "The whole 99 % interval lies outside the margin. For exact measurements, one case lies outside by more "
    "than its numerical error.",
    "inconclusive": "The claim stays open: too few runs, an interval that is too wide, an estimate that still drifts, "
    "a missing package, or a test that needs more effort.",
}
LAWS = {
    "Vanishes": "a discrepancy that vanishes within a numerical tolerance, in every case",
    "Proven": "a fact that is true or false, in every case",
    "Agrees": "z-scores of a Monte Carlo mean, in every case",
    "Equals": "a value: every case if exact, otherwise the t interval of the runs at every point",
    "Bounded": "a bound, a sign or an order, in every case; confirmed where one comes close",
    "Mean": "a bound on the mean over runs, by its t interval at every point",
    "Premise": "an assumption of the claim, which at least one case of every point must satisfy; otherwise the claim "
    "stays open",
    "Probability": "an event per run, by its Clopper-Pearson interval",
    "Power": "an exponent or its bound: the limit of local exponents if exact, otherwise one slope a run and their t "
    "interval",
    "All": "several of these; the weakest part decides, and the parts share the error probability",
}
RUNGS = {
    1: ("identity", "an identity holds exactly, in symbols or in rational numbers"),
    2: ("expectation", "a closed mean equals quadrature or Monte Carlo"),
    3: ("back ends", "numba and JAX compute the same right-hand side"),
    4: ("integrators", "solvers that share no code give the same trajectory"),
    5: ("invariants", "the conserved quantities of the flow are constant"),
    6: ("drift", "the mean of one SGD step of the model is the right-hand side"),
    7: ("trajectory", "SGD of the model follows the flow over the whole run"),
    8: ("law", "a measured dependence on a size has the claimed form"),
    9: ("control", "a false version of the claim is refuted by the same code"),
}
"""Rungs of the ladder of evidence by number: name and meaning."""
FIELDS = {
    "claimed": "the predicted value or bound, with the margin that still confirms it; the margin comes from the "
    "statement, the next order or the numerical error, never from the result",
    "refuted by": "the result that would refute the claim, according to its law and margin",
    "found": "the estimate of the deciding part, with its 95 % interval or the range of its cases",
    "slack": "distance of the measurement from the bound",
    "sensitivity": "a deviation from the claim; if the truth deviated by that much, nine of ten repetitions of this "
    "measurement would not give this answer",
    "rivals": "other laws that were fitted to the same samples; rejected ones do not fit",
    "identity": "the measurement can have only one result, because it follows from the construction (the generator of "
    "the data, the definition of a parameter); it checks the code of odesim and confirms nothing about the "
    "paper",
    "expected": "the answer that is expected of the claim; the page marks unexpected answers",
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
