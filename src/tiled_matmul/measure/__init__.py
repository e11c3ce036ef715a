"""The fair clock, hardware counters, peak rates, searches, and the records they produce.

May import: `torch`, the ladder and the layers below. Front doors: `bench.bench`, `results.load`.
"""
