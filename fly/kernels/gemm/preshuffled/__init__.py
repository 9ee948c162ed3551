"""Products with matrices whose elements are in the order in which waves read them."""
