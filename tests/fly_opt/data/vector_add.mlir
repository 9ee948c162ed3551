module attributes {gpu.container_module, fly.entry = "vector_add"} {
  gpu.module @kernels {
    gpu.func @vector_add_kernel(%A: !fly.memref<f32, global, ?{i64}:1>, %B: !fly.memref<f32, global, ?{i64}:1>, %C: !fly.memref<f32, global, ?{i64}:?{i64}>, %n: i32) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
      %thread = gpu.thread_id x
      %block = gpu.block_id x
      %size = gpu.block_dim x
      %first = arith.muli %block, %size : index
      %index = arith.addi %first, %thread : index
      %i = arith.index_cast %index : index to i64
      %limit = arith.extsi %n : i32 to i64
      %inside = arith.cmpi slt, %i, %limit : i64
      scf.if %inside {
        %coord = fly.make_int_tuple(%i) : (i64) -> !fly.int_tuple<?{i64}>
        %a = fly.memref.load(%A, %coord) : (!fly.memref<f32, global, ?{i64}:1>, !fly.int_tuple<?{i64}>) -> f32
        %b = fly.memref.load(%B, %coord) : (!fly.memref<f32, global, ?{i64}:1>, !fly.int_tuple<?{i64}>) -> f32
        %sum = arith.addf %a, %b : f32
        fly.memref.store(%sum, %C, %coord) : (f32, !fly.memref<f32, global, ?{i64}:?{i64}>, !fly.int_tuple<?{i64}>) -> ()
      }
      gpu.return
    }
  }
  func.func @vector_add(%A: !fly.memref<f32, global, ?{i64}:1> {fly.name = "A", fly.dtype = "f32", fly.shape = ["n"], fly.access = "r"}, %B: !fly.memref<f32, global, ?{i64}:1> {fly.name = "B", fly.dtype = "f32", fly.shape = ["n"], fly.access = "r"}, %C: !fly.memref<f32, global, ?{i64}:?{i64}> {fly.name = "C", fly.dtype = "f32", fly.shape = ["n"], fly.access = "w"}, %n: i32 {fly.name = "n", fly.dtype = "i32"}) {
    %shape = fly.get_shape(%A) : (!fly.memref<f32, global, ?{i64}:1>) -> !fly.int_tuple<?{i64}>
    %extent = fly.get_scalar(%shape) : (!fly.int_tuple<?{i64}>) -> i64
    %c256 = arith.constant 256 : i64
    %blocks = arith.ceildivsi %extent, %c256 : i64
    %grid = arith.index_cast %blocks : i64 to index
    %block = arith.constant 256 : index
    %one = arith.constant 1 : index
    gpu.launch_func @kernels::@vector_add_kernel blocks in (%grid, %one, %one) threads in (%block, %one, %one) args(%A : !fly.memref<f32, global, ?{i64}:1>, %B : !fly.memref<f32, global, ?{i64}:1>, %C : !fly.memref<f32, global, ?{i64}:?{i64}>, %n : i32)
    return
  }
}
