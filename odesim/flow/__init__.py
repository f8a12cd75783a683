"""How a flow is followed: its problem, the ways to advance it, what is recorded, the trajectory."""
