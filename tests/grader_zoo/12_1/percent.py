# status: WRONG
# words: in percent; hint 3
# exercise 12.1: waves
def used(m, n, block_m, block_n, sms):
    tiles = -(-m // block_m) * -(-n // block_n)
    waves = -(-tiles // sms)
    return 100 * tiles / (waves * sms)
