// Locations are read, and printed on demand.
// RUN: fly-opt-py %s | %filecheck %s --check-prefix=WITHOUT
// RUN: fly-opt-py %s --mlir-print-debuginfo | %filecheck %s --check-prefix=WITH

// WITHOUT: llvm.func @f()
// WITHOUT-NOT: loc(
// WITHOUT: llvm.return
// WITH: llvm.return loc("kernel.py":3:5)
module {
  llvm.func @f() {
    llvm.return loc("kernel.py":3:5)
  }
}
