def ring(rank, p):
    steps = []
    for step in range(p):
        rows = (rank - step) % p
        if step < p - 1:
            steps.append([rows, (rank + 1) % p, (rank - 1) % p])
        else:
            steps.append([rows, -1, -1])
    return steps
