"""The filters shipped with fly-llc: MIR in, MIR out.

Each module has `main(mir, words)`, which `fly-llc --insert POINT=NAME` calls.
`python -m fly_llc.shipped NAME < in.mir > out.mir` runs it separately.
"""
