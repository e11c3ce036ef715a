def too_early(calls):
    sent, received = set(), set()
    for index, (what, buffer) in enumerate(calls):
        if what == "wait":
            sent.discard(buffer)
            received.discard(buffer)
        elif buffer in received:
            return index
        elif buffer in sent and what in ("write", "receive"):
            return index
        elif what == "send":
            sent.add(buffer)
        elif what == "receive":
            received.add(buffer)
    return -1
