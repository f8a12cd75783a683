"""Kinks and jumps of the functions of a sample, which make means over points jump as the state changes."""

from derivations.declare.declaration import Declaration

KINKS = ("relu", "abs", "step", "sign", "top1", "clip")


def kinked(declared: Declaration) -> bool:
    """Return True if loss, units or rules have a kink or a jump."""
    trees = [*(group.unit for group in declared.groups), *(rule.tree for rule in declared.rules)]
    trees += [declared.own_loss] if declared.own_loss else []
    trees += [prediction.tree for prediction in declared.predicted]
    trees += [declared.episode.success] if declared.episode is not None else []
    return declared.loss == "hinge" or any(tree.calls(*KINKS) for tree in trees)
