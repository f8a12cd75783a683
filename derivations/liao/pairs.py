"""Correlation functions of the pair kernel, listed without SymPy so that cached code loads fast."""


def correlation_pairs(degree: int) -> list[tuple[int, int]]:
    """All (a, b), a <= b, whose S_ab occur in the kernel of He_p or its derivatives, in the order of the table.

    The edges of the two gates to the two experts number 2p - 2 n34 in all, an even number up to 2p, which is a + b
    in the kernel; the derivative with respect to the gate overlap shifts both indices by one (Price).
    """
    kernel = {(a, total - a) for total in range(0, 2 * degree + 1, 2) for a in range(total // 2 + 1)}
    pairs = kernel | {(a + 1, b + 1) for a, b in kernel}
    return sorted(pairs, key=lambda pair: (sum(pair), pair[1] - pair[0]))
