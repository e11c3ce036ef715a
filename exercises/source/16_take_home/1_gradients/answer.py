def gradients(a, b, g):
    m, k, n = len(a), len(b), len(g[0])
    grad_a = [[sum(g[i][j] * b[p][j] for j in range(n)) for p in range(k)] for i in range(m)]
    grad_b = [[sum(a[i][p] * g[i][j] for i in range(m)) for j in range(n)] for p in range(k)]
    return [grad_a, grad_b]
