// The host function becomes the host program, module assembly that reaches the code object.
// RUN: fly-opt-py --target gfx942 %s -o %t.ll
// RUN: %filecheck %s --input-file=%t.ll
// RUN: %opt -S -O3 %t.ll -o %t.o3.ll
// RUN: %llc -mcpu=gfx942 -filetype=obj %t.o3.ll -o %t.o
// RUN: %ld.lld -shared %t.o -o %t.hsaco
// RUN: %llvm-readelf -p .fly.manifest %t.hsaco | %filecheck %s --check-prefix=SECTION

// CHECK: module asm ".pushsection .fly.manifest,\22\22,@progbits"
// CHECK-NEXT: module asm ".ascii \22{
// CHECK-NEXT: module asm ".popsection"
// CHECK-NOT: @scale(

// SECTION: {"entry":"scale","expressions":{{\[}}["const",1],["extent","A",0],["const",64],["ceildiv",1,2],["const",0],["stride","A",0]],
// SECTION-SAME: "result_names":[],"results":null,
// SECTION-SAME: "steps":[{"arguments":{{\[\[}}{"expression":null,"kind":"pointer","name":"A","size":8}],[{"expression":1,"kind":"integer","name":null,"size":8},{"expression":5,"kind":"integer","name":null,"size":8}],[{"expression":null,"kind":"scalar","name":"x","size":4}]],"block":[2,0,0],"grid":[3,0,0],"kernel":"k","kind":"launch","shared":4,"stream":null}],
// SECTION-SAME: "target":"gfx942","tensors":[],"version":3}
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%A: !fly.memref<f32, global, ?{i64}:?{i64}>, %x: f32) kernel {
      gpu.return
    }
  }
  func.func @scale(%A: !fly.memref<f32, global, ?{i64}:?{i64}> {fly.name = "A", fly.dtype = "f32"}, %x: f32 {fly.name = "x", fly.dtype = "f32"}) {
    %one = arith.constant 1 : index
    %shape = fly.get_shape(%A) : (!fly.memref<f32, global, ?{i64}:?{i64}>) -> !fly.int_tuple<?{i64}>
    %n = fly.get_scalar(%shape) : (!fly.int_tuple<?{i64}>) -> i64
    %c64 = arith.constant 64 : i64
    %blocks = arith.ceildivsi %n, %c64 : i64
    %grid = arith.index_cast %blocks : i64 to index
    %block = arith.index_cast %c64 : i64 to index
    gpu.launch_func @kernels::@k blocks in (%grid, %one, %one) threads in (%block, %one, %one) args(%A : !fly.memref<f32, global, ?{i64}:?{i64}>, %x : f32)
    return
  }
}
