// Dumps go to standard error, in FlyDSL's text; standard output is the artifact and nothing else.
// RUN: fly-opt-py --canonicalize --cse --mlir-print-ir-before-all --mlir-print-ir-after-all %s 2>%t.err -o %t.out
// RUN: %filecheck %s --input-file=%t.err
// RUN: fly-opt-py --canonicalize --cse %s | cmp - %t.out

// CHECK: // -----// IR Dump Before canonicalize //----- //
// CHECK: !fly.layout<(4,8):(1,4)>
// CHECK: // -----// IR Dump After canonicalize //----- //
// CHECK: // -----// IR Dump Before cse //----- //
// CHECK: // -----// IR Dump After cse //----- //
module {
  func.func @f(%l: !fly.layout<(4,8):(1,4)>) {
    return
  }
}
