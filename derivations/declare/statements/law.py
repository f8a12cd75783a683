"""The formulas of a page for the distribution of inputs: eigenvalues, clusters with means, labels.

Kernels and covariances are those of a cluster c, which they do not show; sums over c precede them.
"""

import dataclasses

from derivations.declare.declaration import Declaration


@dataclasses.dataclass(frozen=True)
class Law:
    """Writes the terms of clusters in the formulas of a declaration; `space` is the letter of an eigenspace or "".

    `single` is True if every unit has one vector.
    """

    declared: Declaration
    space: str
    single: bool

    @property
    def several(self) -> bool:
        """Return True if there are several clusters."""
        return self.declared.inputs is not None and len(self.declared.inputs.clusters) > 1

    @property
    def mixed(self) -> bool:
        """Return True unless the formulas are those of one centred Gaussian."""
        return self.several or self.declared.moved or bool(self.label)

    @property
    def label(self) -> str:
        """The label of the samples if there is no teacher; "" with a teacher."""
        return "y_{c}" if self.declared.by_cluster else ""

    @property
    def eigenvalue(self) -> str:
        """The variance of the inputs in an eigenspace (of a cluster), as a factor; "" for isotropic inputs."""
        if self.declared.inputs is None:
            return ""
        cluster = "c" if self.declared.varied and self.several else ""
        return rf"\lambda_{{{cluster + self.space or 1}}}\,"

    @property
    def average(self) -> str:
        """The mean over clusters, as a prefix."""
        return r"\sum_c p_{c}\," if self.several else ""

    @property
    def weight(self) -> str:
        """The weight of a named mean in the mean of a cluster."""
        return "A_{cn}" if self.several else "A_{n}"

    def inputs(self) -> tuple[str, str, str]:
        """Mean and variance of the inputs in an eigenspace, and the random choice of their cluster."""
        mean = (
            rf"\sum_n {self.weight} m_n" + (f"^{{({self.space})}}" if self.space else "")
            if self.declared.moved
            else "0"
        )
        count = len(self.declared.inputs.clusters) if self.declared.inputs is not None else 0
        choice = rf"\text{{ with probability }}p_{{c}}, c = 1, .., {count}" if self.several else ""
        return mean, self.eigenvalue.removesuffix(r"\,"), choice

    def centres(self) -> list[str]:
        """The means of the fields."""
        if not self.declared.moved:
            return []
        sides = [(self.declared.students, "i", "")] + (
            [(self.declared.teachers, "j", "^*")] if self.declared.teachers else []
        )
        lines = []
        for side, index, star in sides:
            for slot in dict.fromkeys(slot for group in side for slot in group.slots):
                superscript = "" if self.single else f"^{{{slot}}}"
                lines.append(rf"\mu{superscript}_{{{index}}} = \sum_n {self.weight}\,({slot}{star}_{index}\cdot m_n)")
        return lines

    def loss(self) -> list[str]:
        """Loss and error as means over clusters of sums over units."""
        if self.label:
            against, square = rf"{self.label} \sum_i a_i K_i", rf"{self.label}^2"
        else:
            against, square = r"\sum_{i,j} a_i b_j K_{ij}", r"\sum_{j,l} b_j b_l K_{jl}"
        inner = rf"\sum_{{i,k}} a_i a_k K_{{ik}} - 2 {against} + {square}"
        teacher = self.label or "f^*"
        error = rf"\mathrm{{E}}[(f - {teacher})^2] = {self.average}\bigl({inner}\bigr)"
        if self.declared.loss == "correlation":
            return [rf"L = -{self.average}{against}", error]
        return [rf"L = \tfrac12 \mathrm{{E}}[(f - {teacher})^2] + \tfrac12 \sigma^2", error]

    def kernels(self) -> list[str]:
        """The additional kernels for means of fields and labels."""
        slope, index, field = (r"\varphi_i'", "", "") if self.single else (r"\partial_s\varphi_i", "^s", "^{s}")
        lines = []
        if self.declared.moved:
            lines.append(
                rf"U{index}_{{ik}} = \mathrm{{E}}[{slope} \varphi_k] = \partial K_{{ik}}/\partial \mu{field}_{{i}}"
            )
        if self.label:
            bend = r"\varphi_i''" if self.single else r"\partial_s\partial_r\varphi_i"
            derivative = rf" = \partial K_i/\partial \mu{field}_i"
            first = rf"U{index}_i = \mathrm{{E}}[{slope}]{derivative},\quad " if self.declared.moved else ""
            lines.append(rf"K_i = \mathrm{{E}}[\varphi_i],\quad {first}"
                         rf"W{'' if self.single else '^{sr}'}_i = \mathrm{{E}}[{bend}]")  # fmt: skip
        return lines

    def drift(self, right: str, mean_overlap: str) -> str:
        """The mean over clusters of a drift, and of its part along their means; `mean_overlap` is (m_n . u)."""
        if not self.declared.moved:
            return rf"{self.average}{right}" if self.eigenvalue else rf"{self.average}\bigl({right}\bigr)"
        kappa = r"\kappa_i" if self.single else r"\kappa^s_i"
        return rf"{self.average}\bigl({right} + {kappa} \sum_n {self.weight}\,{mean_overlap}\bigr)"

    def kappa(self) -> list[str]:
        """The mean derivative of the loss with respect to a field in a cluster."""
        if not self.declared.moved:
            return []
        letter, superscript = (r"\kappa_i", "") if self.single else (r"\kappa^s_i", "^s")
        second = rf"{self.label}\,U{superscript}_i" if self.label else rf"\sum_j b_j U{superscript}_{{ij}}"
        first = "" if self.declared.loss == "correlation" else rf"\sum_k a_k U{superscript}_{{ik}} "
        return [rf"{letter} = a_i \bigl({first}- {second}\bigr)"]
