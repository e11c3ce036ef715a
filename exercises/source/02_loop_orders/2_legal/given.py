# NBVAL_CHECK_OUTPUT
for name, nest in nests.NESTS.items():
    print(f"# {name}: {', '.join(nest.pairs)}?\n{nest.text()}\n")
