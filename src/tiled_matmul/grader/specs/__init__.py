"""The exercises, a module for each notebook: chNN.EXERCISES."""
