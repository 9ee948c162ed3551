"""The fly dialect: types, ops, text form, and the layout algebra."""
