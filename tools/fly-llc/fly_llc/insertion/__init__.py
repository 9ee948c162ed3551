"""Other programs within code generation: filters of MIR and native passes."""
