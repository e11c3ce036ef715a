# status: PASS
# words:
# exercise 06.2: how many ways
def wavefronts(stride, size):
    if stride == 0:
        return 1
    lanes = 128 // size
    total = 0
    for first in range(0, 32, lanes):
        banks = [set() for _ in range(32)]
        for lane in range(first, first + lanes):
            for part in range(size // 4):
                word = lane * stride * (size // 4) + part
                banks[word % 32].add(word)
        total += max(len(words) for words in banks)
    return total
