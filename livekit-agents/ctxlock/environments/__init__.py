"""Interpreters and installers, and how the races are run with another interpreter."""
