"""Tests of the derivation pages."""
