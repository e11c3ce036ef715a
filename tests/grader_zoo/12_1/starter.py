# status: WRONG
# words: is 0.0, should be 0.9696; hint 1
# exercise 12.1: waves
def used(m, n, block_m, block_n, sms):
    # your code: roughly 3 lines
    return 0.0
