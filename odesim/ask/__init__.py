"""How a thing is asked for, the same for Python and for the command line: a request, and what runs it."""
