// The table of times goes to standard error.
// RUN: fly-opt-py --canonicalize --timing %s 2>%t.err | %filecheck %s --check-prefix=OUT
// RUN: %filecheck %s --input-file=%t.err

// OUT: module {
// OUT-NOT: canonicalize
// CHECK: step{{ +}}runs{{ +}}ms{{ +}}%
// CHECK: import MLIR{{ +}}1
// CHECK: canonicalize{{ +}}1
// CHECK: total
module {
}
