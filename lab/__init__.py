"""The lab: the same steps over every provider, on stock and on patched; `lab/README.md`."""
