"""The stage and its pipelines: selection, parsing, and running of passes."""
