gpu.module @kernels {
  gpu.func @k(%x: i32) kernel {
    fly.print(%x) {format = "{0:i64}"} : (i32) -> ()
    gpu.return
  }
}
