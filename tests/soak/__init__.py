"""Whole scenarios for minutes at the highest rate they hold: ``make soak``, or a command each that prints figures."""
