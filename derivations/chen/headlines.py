"""Meanings of the numbers in the summary of a run of `chen`."""

from collections.abc import Mapping

HEADLINES: Mapping[str, str] = {
    "kstar": "feature of the largest initial overlap of each expert, counted from 0 as in arrays",
    "final_profession": "feature of the largest overlap of each expert at the end, counted from 0",
    "strength": "largest overlap of each expert with a feature at the end",
    "max_gcen": "largest overlap of a router with a cluster's centre at the end, in size",
    "max_gfeat": "largest overlap of a router with a feature at the end, in size",
    "final_entropy": "dispatch entropy at the end without routing noise",
    "final_accuracy": "test accuracy at the end without routing noise",
    "final_entropy_noisy": "dispatch entropy at the end under routing noise",
    "final_accuracy_noisy": "test accuracy at the end under routing noise",
    "s": "tier group2: strength of the specialists at the end",
    "D": "tier group2: contrast of the router at the end",
    "routed_in": "tier group2: share of examples routed to their own group under routing noise, at the end",
}
