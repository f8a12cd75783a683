"""Properties of the machine: devices, memory, processes, and streams of random numbers."""
