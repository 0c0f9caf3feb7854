"""Shared parts of check_layers and check_style. Standard library of Python 3.11 only."""
