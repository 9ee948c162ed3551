"""The fly dialect: its types as data, its ops, its text, and the algebra of layouts."""
