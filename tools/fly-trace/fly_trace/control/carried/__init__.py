"""The values that control flow carries: trees of leaves, fields of objects, changes in place."""
