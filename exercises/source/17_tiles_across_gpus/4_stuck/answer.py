def stuck(ranks):
    for index in range(max(len(calls) for calls in ranks)):
        names = {calls[index] if index < len(calls) else None for calls in ranks}
        if len(names) > 1:
            waiting = [rank for rank, calls in enumerate(ranks) if index < len(calls)]
            return [index, waiting]
    return [-1, []]
