"""The NVIDIA backend of the language: `fx.nvvm`."""
