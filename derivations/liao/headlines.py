"""Meanings of the numbers in the summary of a run of `liao`; times are on the clock of the stage."""

from collections.abc import Mapping

HEADLINES: Mapping[str, str] = {
    "teachers": "number of teacher experts",
    "recovered": "teachers recovered: some expert and its router both reached 0.9",
    "expert_recovery_times": "times at which some expert reached 0.9 with a recovered teacher, in order",
    "router_recovery_times": "times at which some router reached 0.9 with a teacher's router, in order",
    "pair_recovery_times": "times at which an expert and its router had both reached 0.9, in order",
    "first_anti_alignment_time": "time at which the first two students became anti-aligned; none if none did",
    "anti_aligned_pairs": "pairs of anti-aligned students at the end",
    "min_I2": "smallest overlap of two students at the end",
    "experts_before": "prune: experts before pruning",
    "removed": "prune: number of experts removed",
    "kept": "prune: indices of the remaining experts, counted from 0 as in arrays",
    "squared_error_before": "prune: E (f_S - f*)^2 before the first removal",
    "squared_error_after": "prune: E (f_S - f*)^2 after the last removal",
}
