"""The fair clock, hardware counters, peak rates, searches, and the records they produce.

May import: the ladder and the layers below it. Front doors: `bench.bench`, `results.load`.
"""
