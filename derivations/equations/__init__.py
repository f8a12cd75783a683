"""From the equations of a tier, as a reader writes them, to the form for evaluation."""
