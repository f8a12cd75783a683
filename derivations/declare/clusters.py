"""Reader of the tables [inputs.means] and [[inputs.cluster]] of a declaration."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from derivations.declare import fields
from derivations.declare.declaration import MEAN, Cluster, Mean
from derivations.declare.grammar import OF_NUMBERS

MEANS = ("norm", "teacher", "spread")
CLUSTER = ("p", "mean", "eigenvalues", "scale", "label")
MOST_CLUSTERS, MOST_MEANS = 64, 16
UNEQUAL = 1e-9
"""Largest distance of the sum of shares or probabilities from 1."""


def shares(entries: Any, quantity: str, table: str, key: str) -> tuple[float, ...]:
    """Return shares by block. Raises `fields.Mistake` unless they sum to 1."""
    if not isinstance(entries, list):
        raise fields.Mistake(
            f"{quantity} is a list with a share for every block, but {fields.shown(entries)} was given", table, key
        )
    values = tuple(fields.real({key: x}, key, table, minimum=0.0) for x in entries)
    if abs(sum(values) - 1) > UNEQUAL:
        raise fields.Mistake(f"the shares of {quantity} sum to {sum(values):.10g}, not to 1", table, key)
    return values


def means(table: Mapping[str, Any], names: Collection[str]) -> tuple[Mean, ...]:
    """Return the named means of [inputs.means]; `names` are those of the user's numbers."""
    mean_tables = fields.table(table, "means")
    if len(mean_tables) > MOST_MEANS:
        raise fields.Mistake(f"at most {MOST_MEANS} named means, but {len(mean_tables)} are given", "inputs", "means")
    return tuple(_mean(name, entry, names) for name, entry in mean_tables.items())


def _mean(name: str, entry: Any, names: Collection[str]) -> Mean:
    place = f"inputs.means.{name}" if isinstance(entry, Mapping) else "inputs.means"
    if not re.fullmatch(r"[A-Za-z]\w{0,39}", name, re.ASCII) or name in ("pi", MEAN, *OF_NUMBERS):
        raise fields.Mistake(f"{fields.shown(name)} cannot be the name of a mean: use letters and digits such as mu",
                             "inputs.means", name)  # fmt: skip
    if name in names:
        raise fields.Mistake(
            f"{name} is a number of the model already; give the mean another name", "inputs.means", name
        )
    if not isinstance(entry, Mapping):
        return Mean(name, fields.formula(entry, "inputs.means", name, names))
    fields.require_known(entry, MEANS, place)
    if "norm" not in entry:
        raise fields.Mistake(f"the mean {name} has no norm", place)
    cosines = entry.get("teacher", [])
    if not isinstance(cosines, list):
        raise fields.Mistake(
            f"teacher is a list with a cosine for every teacher vector, but {fields.shown(cosines)} was given",
            place, "teacher",
        )  # fmt: skip
    return Mean(
        name,
        fields.formula(entry["norm"], place, "norm", names),
        tuple(fields.real({"teacher": x}, "teacher", place, minimum=-1.0, maximum=1.0) for x in cosines),
        shares(entry["spread"], "spread", place, "spread") if "spread" in entry else (),
    )


def clusters(table: Mapping[str, Any], named_means: tuple[Mean, ...], names: Collection[str]) -> tuple[Cluster, ...]:
    """Return the clusters of [[inputs.cluster]]; empty for one Gaussian of mean 0."""
    cluster_tables = fields.entries(table, "cluster", "inputs")
    if len(cluster_tables) > MOST_CLUSTERS:
        raise fields.Mistake(
            f"at most {MOST_CLUSTERS} clusters, but {len(cluster_tables)} are given", "inputs", "cluster"
        )
    declared_clusters = []
    for number, entry in enumerate(cluster_tables, 1):
        with fields.entry_of("inputs.cluster", number):
            declared_clusters.append(_cluster(entry, named_means, names, "spectrum" in table or "covariance" in table))
    _require_together(declared_clusters, named_means)
    return tuple(declared_clusters)


def _cluster(
    entry: Mapping[str, Any], named_means: tuple[Mean, ...], names: Collection[str], spectrum: bool
) -> Cluster:
    place = "inputs.cluster"
    fields.require_known(entry, CLUSTER, place)
    values = entry.get("eigenvalues", [])
    if not isinstance(values, list) or ("eigenvalues" in entry and not values):
        raise fields.Mistake(
            f"eigenvalues is a list with one for every block, but {fields.shown(values)} was given",
            place,
            "eigenvalues",
        )
    if values and spectrum:
        raise fields.Mistake(
            "with a spectrum a cluster takes scale, a factor of all eigenvalues, but not a list of eigenvalues",
            place,
            "eigenvalues",
        )
    if values and "scale" in entry:
        raise fields.Mistake(
            "eigenvalues and scale both give the covariance of the cluster: give only one of the two", place, "scale"
        )
    mean = None
    if entry.get("mean", 0) != 0:
        mean = fields.formula(
            entry["mean"], place, "mean", (*(declared_mean.name for declared_mean in named_means), *names)
        )
    return Cluster(
        fields.formula(entry.get("p", 1.0), place, "p", names),
        mean,
        tuple(fields.formula(value, place, "eigenvalues", names) for value in values),
        fields.formula(entry["scale"], place, "scale", names) if "scale" in entry else None,
        fields.formula(entry["label"], place, "label", names) if "label" in entry else None,
    )


def _require_together(declared_clusters: list[Cluster], named_means: tuple[Mean, ...]) -> None:
    """Raise an error if only some clusters have labels, or if no cluster has a mean."""
    labels = [cluster.label is not None for cluster in declared_clusters]
    if any(labels) and not all(labels):
        place = labels.index(False) + 1
        message = f"cluster {place} has no label, but others have: give all clusters a label, or none"
        raise fields.Mistake(message, "inputs.cluster", "label", place)
    used_names = {name for cluster in declared_clusters if cluster.mean is not None for name in cluster.mean.names()}
    for mean in named_means:
        if mean.name not in used_names:
            raise fields.Mistake(f"no cluster has the mean {mean.name}: write [[inputs.cluster]] with mean = "
                                 f"'{mean.name}'", "inputs.means", mean.name)  # fmt: skip
