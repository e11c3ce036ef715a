from tiled_matmul.plots import take_home

take_home.three_products(2, 3, 4, "Which rows and columns does an element meet?")
