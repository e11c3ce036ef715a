"""Show: every figure of the course, drawn from records, traces and models.

May import: measure and what lies below it. Front doors: one function for each figure.
"""
