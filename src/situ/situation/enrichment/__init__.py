"""Enrichment: events of the root log and what tables know → the rows of the leaves of policies, in columns."""
