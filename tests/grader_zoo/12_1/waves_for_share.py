# status: WRONG
# words: a share is at most 1; hint 2
# exercise 12.1: waves
def used(m, n, block_m, block_n, sms):
    tiles = -(-m // block_m) * -(-n // block_n)
    waves = -(-tiles // sms)
    return tiles / sms
