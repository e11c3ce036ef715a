def wavefronts(stride, size):
    if stride == 0:
        return 1  # everybody wants the same
    lanes = 128 // size  # that go at a time
    meet = sum(lane * stride % lanes == 0 for lane in range(lanes))  # lane 0, in its bank
    return 32 // lanes * meet
