# status: WRONG
# words: waves are counted up; hint 2
# exercise 12.1: waves
def used(m, n, block_m, block_n, sms):
    tiles = -(-m // block_m) * -(-n // block_n)
    waves = max(1, tiles // sms)
    return tiles / (waves * sms)
