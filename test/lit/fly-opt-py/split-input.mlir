// Parts are compiled by themselves and printed with the same line between them.
// RUN: fly-opt-py --split-input-file %s | %filecheck %s

// CHECK: module @first
// CHECK: // -----
// CHECK-NEXT: module @second
module @first {
}
// -----
module @second {
}

// The errors of all parts are told, each at its place.
// RUN: not fly-opt-py --split-input-file %S/Inputs/two-errors.mlir 2>&1 | %filecheck %s --check-prefix=ERRORS
// ERRORS: two-errors.mlir:2:{{.*}}unknown op
// ERRORS: two-errors.mlir:11:{{.*}}unknown op
