"""Choose: which rung multiplies operands of a kind, and with which options. Nothing is launched.

May import: the kit and what lies below it. Front doors: `rule.decide` and `rule.pick` for
`triton_best`, and for other launchers `settings.pick`, `splits.pick`, `fused.tiling_for` and
`float8.pick`.

A model (`costs.clocks`) or costs that were fitted to times (`costs.TILES`) promise how long each of
the `candidates` takes, and the `rule` takes the least. Inside `tuned.tuning` a clock decides.
"""
