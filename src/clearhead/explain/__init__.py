"""Insight as plain data, without any output format in it."""
