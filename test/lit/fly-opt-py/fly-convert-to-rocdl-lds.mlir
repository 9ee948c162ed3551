// RUN: fly-opt-py --convert-fly-to-rocdl %s | FileCheck %s

// Each shared make_ptr is a variable of its own; dynamic LDS is one variable a module.
// CHECK-LABEL: gpu.module @static
// CHECK-DAG: llvm.mlir.global internal @[[A:__shared_alloc_[0-9]+]]() {addr_space = 3 : i32, alignment = 16 : i64, dso_local} : !llvm.array<1024 x i8>
// CHECK-DAG: llvm.mlir.global internal @[[B:__shared_alloc_[0-9]+]]() {addr_space = 3 : i32, alignment = 128 : i64, dso_local} : !llvm.array<64 x i8>
// CHECK: gpu.func @k
// CHECK-DAG: llvm.mlir.addressof @[[A]] : !llvm.ptr<3>
// CHECK-DAG: llvm.mlir.addressof @[[B]] : !llvm.ptr<3>
gpu.module @static {
  gpu.func @k(%x: f32) kernel {
    %a = fly.make_ptr() {dictAttrs = {allocSize = 1024 : i64}} : () -> !fly.ptr<f32, shared>
    %b = fly.make_ptr() {dictAttrs = {allocBytes = 64 : i64, allocAlign = 128 : i64}} : () -> !fly.ptr<f32, shared>
    fly.ptr.store(%x, %a) : (f32, !fly.ptr<f32, shared>) -> ()
    fly.ptr.store(%x, %b) : (f32, !fly.ptr<f32, shared>) -> ()
    gpu.return
  }
}

// CHECK-LABEL: gpu.module @dynamic
// CHECK: llvm.mlir.global external @[[D:__dynamic_shared_[0-9]+]]() {addr_space = 3 : i32, alignment = 1024 : i64, dso_local} : !llvm.array<0 x i8>
// CHECK-NOT: llvm.mlir.global
// CHECK: gpu.func @k
// CHECK: %[[P:.*]] = llvm.mlir.addressof @[[D]]
// CHECK: %[[Q:.*]] = llvm.getelementptr %[[P]][0] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
// CHECK: llvm.store %{{.*}}, %[[Q]] {alignment = 1024 : i64} : f32, !llvm.ptr<3>
// CHECK: gpu.func @l
// CHECK: llvm.mlir.addressof @[[D]]
gpu.module @dynamic {
  gpu.func @k(%x: f32) kernel {
    %d = fly.get_dyn_shared() : !fly.ptr<i8, shared, align<1024>>
    %f = fly.recast_iter(%d) : (!fly.ptr<i8, shared, align<1024>>) -> !fly.ptr<f32, shared, align<1024>>
    fly.ptr.store(%x, %f) : (f32, !fly.ptr<f32, shared, align<1024>>) -> ()
    gpu.return
  }
  gpu.func @l(%x: i8) kernel {
    %d = fly.get_dyn_shared() : !fly.ptr<i8, shared, align<1024>>
    fly.ptr.store(%x, %d) : (i8, !fly.ptr<i8, shared, align<1024>>) -> ()
    gpu.return
  }
}
