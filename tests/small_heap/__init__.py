"""Random joins in a driver with little memory: what the guard rails let pass does not fail."""
