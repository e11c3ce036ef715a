"""The fair clock, hardware counters, peak rates, searches, and the records that they leave.

May import: the ladder and what lies below it. Front doors: `bench.bench`, `results.load`.
"""
