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
