"""Situations: a domain in concepts and relationships, policies about it, and what it means that one holds."""
