def first_fault(schedule):
    holds, arrived, seen, read = {}, set(), set(), set()  # of the buffers
    groups = [[]]  # not waited for yet; the last one is still open
    for place, (what, *numbers) in enumerate(schedule):
        if what == "copy":
            tile, buffer = numbers
            if buffer in read:
                return place, "still read"
            holds[buffer] = tile
            arrived.discard(buffer)
            seen.discard(buffer)
            groups[-1].append(buffer)
        elif what == "commit":
            groups.append([])
        elif what == "wait":
            while len(groups) - 1 > numbers[0]:
                arrived.update(groups.pop(0))
        elif what == "barrier":
            seen |= arrived
            read.clear()
        else:
            tile, buffer = numbers
            if holds.get(buffer) != tile:
                return place, "other tile"
            if buffer not in arrived:
                return place, "under way"
            if buffer not in seen:
                return place, "no barrier"
            read.add(buffer)
    return len(schedule), "right"
