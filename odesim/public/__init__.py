"""Public functions of `import odesim`: descriptions (`look`), runs (`make`), verdicts and storage (`keep`), and others.

These modules import nothing heavy before they are called. Their messages name arguments, not options (`speak`).
"""
