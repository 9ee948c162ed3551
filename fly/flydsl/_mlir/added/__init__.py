"""What FlyDSL's modules of dialects have besides MLIR's builders."""
