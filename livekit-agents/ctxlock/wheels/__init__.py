"""Reads stock wheels, and writes patched ones that are the same to the byte whoever builds."""
