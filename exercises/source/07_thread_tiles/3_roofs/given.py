FLOAT = 4  # bytes
PEAK = 67.0  # 10¹² FLOPs a second, of an H200 in float32
GLOBAL = 4.8  # 10¹² bytes a second, from global memory
SHARED = 33.5  # 10¹² bytes a second, from shared memory, all multiprocessors together
