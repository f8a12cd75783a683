"""What the headline numbers of a run of a declared model are; every declared event has one more."""

from collections.abc import Mapping

HEADLINES: Mapping[str, str] = {
    "tier": "level of description",
    "conventions": "how the declaration is read where it leaves a choice",
    "gradient": "what the gradient of an activation that has none everywhere is taken to be",
    "error_initial": "error at the start",
    "error_final": "error at the end",
    "classification_error_initial": "hinge and logistic loss: share of wrong labels at the start",
    "classification_error_final": "hinge and logistic loss: share of wrong labels at the end",
    "classification_sampling_error": "sampling error of the share of wrong labels at the end; 0 of a closed form",
    "best_cosines": "best cosine of a student with each teacher at the end",
    "best_correlations": "inputs with eigenvalues: best correlation of a student with each teacher at the end",
    "blocks": "inputs with eigenvalues: blocks of coordinates that have one each",
    "spectrum_error": "inputs with a spectrum: relative error of the linear flow by blocks, over all times",
    "samples": "inputs from a file: samples in it",
    "constant_columns": "inputs from a file: constant columns, which are left out",
    "classes": "inputs from a file with labels: classes of samples",
    "covariance_lost": "inputs from a file with labels: what theory leaves out of the classes' covariances, relative",
    "passes": "explicit SGD on inputs from a file: how often a sample was drawn on average",
    "step_x_largest": "inputs with eigenvalues, online: step x largest eigenvalue / d, 0 in the limit",
    "inputs": "inputs with eigenvalues: where SGD leaves its online limit",
    "critical_step": "online limit of linear units: the step from which the loss grows",
    "points": "tier sampled: points of every mean",
    "sampling_error": "tier sampled: relative error of the derivative at the start, half-way and at the end",
    "information_exponent": "tier leading: the information exponent",
    "rate": "tier leading: the constant of the growth law",
    "law": "tier leading: the growth law in words",
    "predicted_times": "tier leading: predicted time of every teacher",
    "predicted_level": "tier leading: the overlap at which a teacher counts as found",
}
