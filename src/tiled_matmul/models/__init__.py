"""Predict: what a cache, a roof, an order of programs or a wave of tiles will cost, by arithmetic.

May import: machine. Front door: the model of the day, such as `cache.loop_misses`.
"""
