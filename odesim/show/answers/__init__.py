"""Pictures of answers, with a module for each command; its function `draw(answer)` returns figures by name."""

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from odesim.request.answer import Answer
from odesim.show import plot
from odesim.show.column import finish, head


def figures(answer: Answer) -> Mapping[str, Any]:
    """Return the figures of an answer by name, each with a title: the verb, the system and the first sentence."""
    module = importlib.import_module(f"{__name__}.{answer.asked.verb}")
    with plot.style():
        drawings: Mapping[str, Any] = module.draw(answer)
        for figure in drawings.values():
            if not figure.get_suptitle():
                head(figure, f"{answer.asked.verb}, {answer.asked.system_name}")
            finish(figure)
    return drawings


def draw(answer: Answer, folder: Path, svg: bool = False) -> list[Path]:
    """Draw the pictures of an answer into PNG files in `folder`, and SVG files if requested. Return their paths."""
    endings, drawings = ("png", "svg") if svg else ("png",), figures(answer)
    for name, figure in drawings.items():
        plot.save_figure(figure, name, folder, endings)
    return [folder / f"{name}.{ending}" for name in drawings for ending in endings]
