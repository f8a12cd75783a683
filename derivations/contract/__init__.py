"""Types of the project: systems, stages, equations, models for SGD, and states.

This package only defines types.  `odesim` has the code that uses them, and each system has a folder with its own
content.  Nothing here imports SymPy, JAX, numba or `hermite`, so that a `Model` is independent of every derivation.
"""

from derivations.contract.equations import Advance as Advance
from derivations.contract.equations import Code as Code
from derivations.contract.equations import Equations as Equations
from derivations.contract.equations import Independent as Independent
from derivations.contract.equations import Kernel as Kernel
from derivations.contract.equations import Kind as Kind
from derivations.contract.equations import Observables as Observables
from derivations.contract.equations import Recursion as Recursion
from derivations.contract.equations import Role as Role
from derivations.contract.equations import Smooth as Smooth
from derivations.contract.equations import Stepped as Stepped
from derivations.contract.equations import Tier as Tier
from derivations.contract.equations import Written as Written
from derivations.contract.layout import Dense as Dense
from derivations.contract.layout import Layout as Layout
from derivations.contract.layout import Symmetric as Symmetric
from derivations.contract.layout import Upper as Upper
from derivations.contract.model import Model as Model
from derivations.contract.parameter import UsageError as UsageError
from derivations.contract.parameter import parameter as parameter
from derivations.contract.scalar_model import Eigenspaces as Eigenspaces
from derivations.contract.scalar_model import ScalarModel as ScalarModel
from derivations.contract.scalar_model import packed as packed
from derivations.contract.scalar_model import unpacked as unpacked
from derivations.contract.source import Source as Source
from derivations.contract.state import BY_PARTS as BY_PARTS
from derivations.contract.state import PARTS as PARTS
from derivations.contract.state import Component as Component
from derivations.contract.state import Crossing as Crossing
from derivations.contract.state import Initial as Initial
from derivations.contract.state import Labelled as Labelled
from derivations.contract.system import Dynamics as Dynamics
from derivations.contract.system import Map as Map
from derivations.contract.system import MapResult as MapResult
from derivations.contract.system import Page as Page
from derivations.contract.system import Stage as Stage
from derivations.contract.system import System as System
from derivations.contract.system import load as load
