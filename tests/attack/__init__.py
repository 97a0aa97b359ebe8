"""The tool under attack: ``python -m tests.attack``, a small part of it in ``make test``."""
