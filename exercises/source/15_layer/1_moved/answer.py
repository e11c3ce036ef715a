def moved(m, n, k, steps, each):
    operand = {"bias": n, "scale": m, "residual": m * n}
    needed = sum(operand.get(step, 0) for step in steps)
    fused = m * k + k * n + needed + m * n
    separate = fused + 2 * m * n * len(steps)
    return separate * each, fused * each
