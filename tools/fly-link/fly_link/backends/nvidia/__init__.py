"""The NVIDIA backend of fly-link: PTX → cubin by `ptxas`."""
