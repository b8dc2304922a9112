"""Policies: checked against the domain, in normal form, planned, and held against each other."""
