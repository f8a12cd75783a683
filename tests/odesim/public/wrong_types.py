"""Call every public function with every named argument of a wrong type; prints what was no `UsageError`, as JSON."""

import inspect
import json
import warnings

import numpy as np

import odesim

WRONG = (object(), 3.5j, ["a", 3], {"q": object()}, b"bytes", float("nan"), np.ones((2, 2)))
TINY = {"m": 2, "m_star": 1, "d": 100, "until": 0.1}


def calls(run):
    """A good call of every public function with options."""
    return {
        "check": {"system": "liao", "claims": "eq-5-sol", "step_size": 1e-2, "batch": 4, "seeds": 2, **TINY},
        "compare": {"first": "liao", "step_size": 1e-2, "batch": 4, "seeds": 2, **TINY},
        "conventions": {"system": "saad_solla_1995"},
        "derivatives": {"system": "pruning", "tier": "homogeneous"},
        "derive": {"system": "pruning", "tier": "homogeneous"},
        "explore": {"what": run, "out": "page.html", "overwrite": True},
        "export": {"system": "saad_solla_1995", "to": "numpy"},
        "exponents": {"system": "ben_arous_2021"},
        "gradient": {"system": "arnaboldi_2023", "of": "final error", "to": ["step"], "until": 0.5},
        "integrate": {"system": "liao", **TINY},
        "atlas": {"system": "arnaboldi_2023", "starts": 4},
        "linearise": {"source": run},
        "load": {"folder": "nowhere"},
        "observe": {"system": "liao", "weights": {}},
        "optimise": {"system": "arnaboldi_2023", "until": 0.5, "knots": 2},
        "predict": {"run": run, "inputs": {}},
        "report": {"folders": ["nowhere"], "out": "report.html"},
        "save": {"result": run, "folder": "kept", "pictures": False, "overwrite": True},
        "simulate": {"system": "liao", "method": "compressed", "step_size": 1e-2, "batch": 4, **TINY},
        "sweep": {"system": "liao", "over": {"d": [100]}, "m": 2, "m_star": 1, "until": 0.1},
        "system": {"name": "liao"},
        "verify": {"system": "liao", "claims": "eq-5-sol"},
    }


def main():
    """Make the calls."""
    warnings.simplefilter("ignore")
    wrong, asked = [], 0
    for name, good in calls(odesim.integrate("liao", **TINY, save_points=3)).items():
        for parameter in inspect.signature(getattr(odesim, name)).parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                continue
            for value in WRONG:
                asked += 1
                try:
                    getattr(odesim, name)(**{**good, parameter.name: value})
                    said = "accepted"
                except (odesim.UsageError, odesim.MissingError) as error:
                    said = "" if str(error) and "\\n" not in str(error) else "no single sentence"
                except Exception as error:
                    said = f"{type(error).__name__}: {error}"
                if said:
                    wrong.append([name, parameter.name, repr(value)[:30], said[:150]])
    print(json.dumps({"asked": asked, "wrong": wrong}))


if __name__ == "__main__":
    main()
