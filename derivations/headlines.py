"""Meanings of the numbers that the summaries of all systems have."""

from collections.abc import Mapping

COMMON: Mapping[str, str] = {
    "loss_initial": "population loss at the start",
    "loss_final": "population loss at the end",
    "diverged": "step or time at which the loss diverged, its values, and the critical step if it is known",
    "horizon": "end time of the run, after which nothing is known",
    "replicas": "SGD: number of replicas",
    "steps": "SGD: steps taken",
    "steps_per_second": "SGD: steps of all replicas a second, without compilation",
    "batches": "SGD: whether batches were counted by the values that samples take, or drawn, and why",
    "snapshots": "observed weights: number of snapshots",
    "clock": "observed weights of a declared model: its speed relative to the flow, and the reason for it",
    "speed": "observed weights: speed of the log beside the flow, with its 95 % interval speed_low, speed_high",
    "explained": "observed weights: part of the squared motion that the flow explains at this speed",
    "distance_median": "comparison: median over replicas of the largest distance of any component at any time",
    "distance_band_10_90": "comparison: the 10 % and 90 % quantiles over replicas of that distance",
    "distance_median_interval_95": "comparison: bootstrap interval of the median at 95 %, from three replicas on",
    "interpolation_error": "comparison: largest error of interpolating the first run between its saved times",
    "components": "comparison: the median distance of every component",
    "components_over_range": "comparison: the same in units of the range of each component",
    "standard_errors": "comparison: how many standard errors the mean of the replicas is off, about 1 where both agree",
    "agreement": "comparison: whether the runs agree within every margin over the whole run, or differ",
    "judgements": "comparison: by component the verdict, its sentence, the margin, and the largest possible difference",
    "inside_90": "comparison: share of pairs of replica and time inside the 90 % band of SGD around the flow",
    "inside_90_expected": "comparison: the theoretical value of that share",
    "inside_90_standard_error": "comparison: standard error of that share, over replicas",
    "band": "comparison: quantity, size, step and batch of that band, or the reason why there is none",
    "notes": "comparison: replicas that end in two groups, and noise that the flow omits",
}
