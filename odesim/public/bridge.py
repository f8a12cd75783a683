"""Export of declared models to other codes: training scripts and conventions. Nothing is written."""

import os
from typing import TYPE_CHECKING, Any

from odesim.public.speak import chosen, known, speaking

if TYPE_CHECKING:
    from derivations.contract import System
    from odesim.study.conventions import Conventions

OPTIONS = ("preset", "config", "seed", "until")


@speaking
def export(
    system: "str | System",
    to: str,
    *,
    preset: str | None = None,
    config: "str | os.PathLike[str] | None" = None,
    seed: int | None = None,
    until: Any = None,
    save_points: int | None = None,
    **parameters: Any,
) -> str:
    """Return a training script of a declared model, which runs without odesim and writes a log for `observe`.

    Arguments:
        system: Name of a system, path of a file that declares one, or a `System`.
        to: "torch", "numpy" or "jax", the library of the script.
        preset, config, until: As for `integrate`.
        seed: Seed of the script (0), of the start and the samples.
        save_points: Number of snapshots in the log (201).
        parameters: Parameters of the system.

    Returns:
        The text of the script: the network, the teacher, the loss, the inputs, the start and the steps of SGD as
        declared, with the conventions in its first comment.

    Raises:
        UsageError: The system is not declared, or has a feature that scripts do not support (rules that are not
            gradients, stages, giant steps, several heads, inputs from a file, ...). The message names the feature.

    Example:
        >>> import odesim
        >>> script = odesim.export("saad_solla_1995_step", "torch", d=200)
        >>> "torch.erf(math.sqrt(2)*w/2)" in script
        True
    """
    from odesim.request.case import Case
    from odesim.show.training_script.render import training_script

    own = chosen(system)
    known(own, parameters, (*OPTIONS, "to", "save_points"), "export")
    case = Case.build(
        own, parameters, preset=preset, config=config, seed=seed, until=until, save_points=save_points
    )  # fmt: skip
    return training_script(case, to)


@speaking
def conventions(
    system: "str | System",
    *,
    preset: str | None = None,
    config: "str | os.PathLike[str] | None" = None,
    until: Any = None,
    **parameters: Any,
) -> "Conventions":
    """Translate learning rate, initial scale, loss and time of a declared model into the conventions of other codes.

    Arguments:
        system: Name of a system, path of a file that declares one, or a `System`.
        preset, config, until: As for `integrate`.
        parameters: Parameters of the system.

    Returns:
        A `Conventions`. It has a row for each convention, by name, such as `table["loss_without_half"]`. A row has the
        learning rate of each trained array, the factors of the initial weights, the label noise, the time of a step,
        and `factor`, the speed relative to the flow of a code that uses the declared numbers without translation.
        `summary()` has the whole table as plain data.

    Raises:
        UsageError: The system is not declared, or has giant steps.

    Example:
        >>> import odesim
        >>> table = odesim.conventions("saad_solla_1995_step", d=100, step=0.5)
        >>> table["declared"].rates, table["loss_without_half"].rates
        ({'w': 0.005}, {'w': 0.0025})
        >>> table["fields_over_sqrt_d"].weights
        {'w': 10.0}
    """
    from odesim.request.case import Case
    from odesim.study.conventions import conventions

    own = chosen(system)
    known(own, parameters, ("preset", "config", "until"), "conventions")
    return conventions(Case.build(own, parameters, preset=preset, config=config, until=until))
