"""Foreign models: each as legal on stock as the next, each compared with stock.

`python -m lab.foreign` runs them all. The model records what reaches its session, in which order,
with which objects, in which task and in which step of the loop; `variants.py` has one small class
for each thing that a model may do and the patch may not presume otherwise.
"""
