"""Parameters and multiply-adds of the vision mixtures of section 5, counted from their published sizes."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Vision:
    """A vision transformer whose dense blocks are partly replaced by mixtures of experts.

    `blocks` encoders of width d and hidden width m; `moe` of them contain `experts` experts in each of `groups` groups,
    and every token uses `active` experts of a group. In the last `tiled` blocks tokens are repeated once per group.
    """

    blocks: int
    moe: int
    experts: int
    d: int
    m: int
    patch: int
    tokens: int
    classes: int
    active: int
    groups: int = 1
    tiled: int = 0

    @property
    def expert(self) -> int:
        """Parameters of one expert, or of one dense block's perceptron."""
        return 2 * self.d * self.m + self.m + self.d

    @property
    def parameters(self) -> int:
        """All parameters: embedding, attention and norms of every block, perceptrons, experts, routers, head."""
        d, held = self.d, self.groups * self.experts
        embedding = 3 * self.patch**2 * d + d + d + self.tokens * d
        shared = self.blocks * (4 * (d * d + d) + 4 * d)
        perceptrons = (self.blocks - self.moe) * self.expert + self.moe * (held * self.expert + d * held)
        return embedding + shared + perceptrons + d * self.classes + self.classes

    def pruned_share(self, experts: float) -> float:
        """Share of all parameters in a share `experts` of the experts."""
        return experts * self.moe * self.groups * self.experts * self.expert / self.parameters

    @property
    def multiply_adds(self) -> tuple[float, float]:
        """(all, those of the experts) per image."""
        attention, perceptron = 4 * self.d**2 + 2 * self.tokens * self.d, 2 * self.d * self.m
        attentions, dense = self.blocks, self.blocks - self.moe
        if self.tiled:  # tokens are repeated after the attention of the first mixture
            plain = self.blocks - self.tiled
            attentions = plain + 1 + self.groups * (self.tiled - 1)
            dense = plain + self.groups * (self.tiled - self.moe)
        experts = self.moe * self.active * perceptron * self.groups
        total = attentions * attention + dense * perceptron + experts
        return self.tokens * total, self.tokens * experts

    def saved(self, experts: float) -> float:
        """Share of multiply-adds saved by pruning a share of the experts, if tokens are spread evenly over them."""
        total, moe = self.multiply_adds
        return experts * moe / total


V_MOE = Vision(12, 6, 8, 768, 3072, 16, 65, 10, 2)
E3_MOE = Vision(8, 2, 4, 512, 2048, 32, 65, 100, 1, groups=2, tiled=3)
