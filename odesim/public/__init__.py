"""What `import odesim` offers, by what is asked: to look (`look`), to compute (`make`), to judge and to keep (`keep`).

These modules import nothing heavy before they are called, and speak of arguments, not of options (`speak`).
"""
