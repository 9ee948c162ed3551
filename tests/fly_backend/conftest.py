from backends import clean_registry, template  # noqa: F401
