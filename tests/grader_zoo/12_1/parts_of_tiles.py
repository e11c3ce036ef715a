# status: WRONG
# words: no part of a tile; hint 1
# exercise 12.1: waves
def used(m, n, block_m, block_n, sms):
    tiles = m * n / (block_m * block_n)
    waves = -(-tiles // sms)
    return tiles / (waves * sms)
