# status: WRONG
# words: the last wave is full; hint 2
# exercise 12.1: waves
def used(m, n, block_m, block_n, sms):
    tiles = -(-m // block_m) * -(-n // block_n)
    waves = tiles // sms + 1
    return tiles / (waves * sms)
