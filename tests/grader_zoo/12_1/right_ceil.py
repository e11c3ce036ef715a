# status: PASS
# words: 
# exercise 12.1: waves
def used(m, n, block_m, block_n, sms):
    tiles = math.ceil(m / block_m) * math.ceil(n / block_n)
    return tiles / sms / math.ceil(tiles / sms)
