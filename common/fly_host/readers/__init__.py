"""What runs host programs on a machine: the interpreter, and generated Python. Native code is in
`fly_host.native`."""
