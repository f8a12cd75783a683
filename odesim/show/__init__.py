"""Output for readers: pictures, figures, reports, derivation pages, tables of verdicts."""
