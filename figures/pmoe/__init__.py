"""The figures and tables of pmoe."""
