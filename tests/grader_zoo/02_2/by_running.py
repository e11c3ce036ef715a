# status: FORBIDDEN
# words: numpy
# exercise 02.2: the illegal interchange
def legal(nest, pair):
    import numpy

    return numpy.array_equal(nest, pair)
