"""Array functions of a model in forms that numba compiles in a tenth of a second instead of two.

numba's own `where`, `sum` over an axis and `argmax` along one take one to three seconds for every combination of
arguments. A model is written once, with `np`, also for JAX. In the text that numba compiles, these calls are replaced
by the functions below. These add in the same order, so that results are the same to the last bit.
"""

import ast

SOURCES = (
    """@vectorize
def where(condition, one, other):
    return one if condition else other
""",
    """def largest(table):
    found, best = np.zeros(table.shape[1], dtype=np.int64), np.empty(table.shape[1])
    for i in range(found.size):
        best[i] = table[0, i]
    for m in range(1, table.shape[0]):
        for i in range(found.size):
            one, other = best[i], table[m, i]
            if one == one and (other > one or other != other):  # not a number: the first of them, as NumPy
                best[i] = other
                found[i] = m
    return found
""",
    """def sum_0(table):
    total = np.zeros(table.shape[1])
    for m in range(table.shape[0]):
        for i in range(total.size):
            total[i] += table[m, i]
    return total
""",
    """def sum_1(values):
    total = np.zeros((values.shape[0], values.shape[2]))
    for p in range(values.shape[1]):
        for j in range(values.shape[0]):
            for i in range(values.shape[2]):
                total[j, i] += values[j, p, i]
    return total
""",
    """def by_last(values, row):
    found = np.empty(values.shape)
    flat, out = values.reshape((-1, row.size)), found.reshape((-1, row.size))
    for j in range(flat.shape[0]):
        for i in range(row.size):
            out[j, i] = flat[j, i] * row[i]
    return found
""",
    """def less_last(values, row):
    found = np.empty(values.shape)
    flat, out = values.reshape((-1, row.size)), found.reshape((-1, row.size))
    for j in range(flat.shape[0]):
        for i in range(row.size):
            out[j, i] = flat[j, i] - row[i]
    return found
""",
)
"""`np.where`, `np.argmax(table, axis=0)`, `table.sum(0)` of a matrix and `values.sum(1)` of three axes; then
`np.multiply(values, row)` and `np.subtract(values, row)` for a `row` (B,) along the last axis of contiguous `values`
(.., B). numba broadcasts entry by entry, without vector code: 6 ns per entry in place of .5.
"""
OF_ROWS = {"multiply": "by_last", "subtract": "less_last"}


class _Light(ast.NodeTransformer):
    """Replaces NumPy's functions by those of `SOURCES`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(ast.Attribute(ast.Name("np"), "where")):
                return ast.Call(ast.Name("where", ast.Load()), node.args, [])
            case ast.Call(ast.Attribute(ast.Name("np"), "argmax"), [table], [ast.keyword("axis", ast.Constant(0))]):
                return ast.Call(ast.Name("largest", ast.Load()), [table], [])
            case ast.Call(ast.Attribute(ast.Name("np"), "multiply" | "subtract" as name), [values, row], []):
                return ast.Call(ast.Name(OF_ROWS[name], ast.Load()), [values, row], [])
            case ast.Call(ast.Attribute(values, "sum"), [ast.Constant(0 | 1 as axis)], []):
                return ast.Call(ast.Name(f"sum_{axis}", ast.Load()), [values], [])
        return node


def lightened(text: str) -> str:
    """Return the source text of a function with NumPy's functions replaced by those of `SOURCES`."""
    return ast.unparse(_Light().visit(ast.parse(text)))
