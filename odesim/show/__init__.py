"""What people see: pictures, figures, reports, derivation pages, tables of verdicts."""
