"""Several classes: an output per class and the softmax loss (Chowdhury et al. 2023, Appendix M)."""
