"""Meanings of the numbers in the summary of a run of `liao`; times are on the clock of the stage."""

from collections.abc import Mapping

HEADLINES: Mapping[str, str] = {
    "teachers": "number of teacher experts",
    "recovered": "teachers found: some expert and its router both reached 0.9",
    "expert_recovery_times": "when some expert reached 0.9 with a teacher, of all teachers found, in order",
    "router_recovery_times": "when some router reached 0.9 with a teacher's router, in order",
    "pair_recovery_times": "when an expert and its router had both reached 0.9, in order",
    "first_anti_alignment_time": "when the first two students turned against each other; none where none did",
    "anti_aligned_pairs": "pairs of students turned against each other at the end",
    "min_I2": "least overlap of two students at the end",
    "experts_before": "prune: experts before pruning",
    "removed": "prune: number of experts removed",
    "kept": "prune: places of the experts kept, counted from 0 as in arrays",
    "squared_error_before": "prune: E (f_S - f*)^2 before the first removal",
    "squared_error_after": "prune: E (f_S - f*)^2 after the last removal",
}
