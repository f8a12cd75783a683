"""Meanings of the numbers in the summary of a run of `kawata`; times are on the clock of the stage."""

from collections.abc import Mapping

HEADLINES: Mapping[str, str] = {
    "neurons": "number of neurons",
    "threshold": "overlap at which a task counts as recovered",
    "local_reached": "neurons that recovered the task of a cluster",
    "local_censored": "neurons that did not recover it, up to the end",
    "local_time_quartiles": "quartiles over all neurons of the time of recovery; none if the run ends before",
    "global_reached": "neurons that recovered the global task",
    "global_censored": "neurons that did not recover it, up to the end",
    "global_time_quartiles": "quartiles over all neurons of the time of recovery; none if the run ends before",
    "censored": "neurons that recovered no task up to the end",
    "largest_local": "largest overlap of any neuron with the task of a cluster at the end",
    "median_local": "median over neurons of their largest such overlap at the end",
    "largest_global": "largest overlap of any neuron with the global task at the end",
    "median_global": "median over neurons of that overlap at the end",
    "experts": "phase 2: number of experts",
    "experts_of_cluster": "phase 2: experts assigned to each cluster",
    "clusters_covered": "phase 2: clusters for which the gate of some expert is open with probability above 1/2",
    "right_active": "phase 2: mean probability that a gate is open on the cluster of its expert",
    "wrong_active": "phase 2: mean probability that a gate is open on another cluster",
    "gate_samples": "phase 2: samples from which the gate step is estimated (0: its mean)",
    "test_error": "phase 4: mean absolute error on test samples",
    "test_squared_error": "phase 4: mean squared error on test samples",
    "error_of_zero": "phase 4: mean absolute error of the function 0",
    "squared_error_of_zero": "phase 4: its mean squared error",
    "relative_error": "phase 4: test_error over error_of_zero",
    "training_samples": "phase 4: samples of the regression",
}
