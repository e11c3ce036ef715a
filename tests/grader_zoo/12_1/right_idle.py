# status: PASS
# words: 
# exercise 12.1: waves
def used(m, n, block_m, block_n, sms):
    tiles = -(-m // block_m) * -(-n // block_n)
    left = tiles % sms
    idle = sms - left if left else 0
    return 1 - idle / (tiles + idle)
