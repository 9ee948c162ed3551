"""The command line of a tool: options, their table, `--version`, and work in a child process."""
