from tiled_matmul.models.waves import Waves
from tiled_matmul.plots import shapes

shapes.schedule({"9 tiles": Waves(9, 5), "11 tiles": Waves(11, 5)}, "Idle time is hatched")
