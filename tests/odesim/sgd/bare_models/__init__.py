"""Models made for the tests, in a package of their own so that numba's generated code can name them."""
