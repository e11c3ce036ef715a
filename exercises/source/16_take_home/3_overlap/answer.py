def shared_bytes(a, b):
    spans = []
    for address, shape, strides, each in (a, b):
        last = (shape[0] - 1) * strides[0] + (shape[1] - 1) * strides[1]
        spans.append((address, address + (last + 1) * each))
    (first_a, end_a), (first_b, end_b) = spans
    return max(0, min(end_a, end_b) - max(first_a, first_b))
