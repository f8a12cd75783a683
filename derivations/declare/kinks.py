"""Kinks and jumps of the functions of a sample, at which means over points jump as the state moves."""

from derivations.declare.declaration import Declaration

KINKS = ("relu", "abs", "step", "sign", "top1", "clip")


def kinked(declared: Declaration) -> bool:
    """True where loss, units or rules have a kink or a jump."""
    trees = [*(group.unit for group in declared.groups), *(rule.tree for rule in declared.rules)]
    trees += [declared.own_loss] if declared.own_loss else []
    trees += [one.tree for one in declared.predicted]
    trees += [declared.episode.success] if declared.episode is not None else []
    return declared.loss == "hinge" or any(tree.calls(*KINKS) for tree in trees)
