"""The machine that odesim runs on: devices, memory, processes, streams of random numbers."""
