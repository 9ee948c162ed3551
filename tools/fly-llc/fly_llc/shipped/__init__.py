"""The filters that come with fly-llc: MIR in, MIR out.

Each module has `main(mir, words)`, which `fly-llc --insert POINT=NAME` calls, and which
`python -m fly_llc.shipped NAME < in.mir > out.mir` runs by itself. They work on a
machine's instructions, so they are in folders of its vendor.
"""
