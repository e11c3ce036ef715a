def used(m, n, block_m, block_n, sms):
    tiles = -(-m // block_m) * -(-n // block_n)
    waves = -(-tiles // sms)
    return tiles / (waves * sms)
