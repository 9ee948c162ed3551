// Atoms and tiled ops as FlyDSL writes them: read, checked, and printed again.
// RUN: fly-opt-py %s | %filecheck %s
// RUN: fly-opt-py %s | fly-opt-py | %filecheck %s

!mfma = !fly.mma_atom<!fly_rocdl.cdna3.mfma<32x32x8,(bf16,bf16)->f32>>
!mma = !fly.tiled_mma<!mfma, <(2,1,1):(1,0,0)>, <[*|64|*]>>
!load = !fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<64, cache = 2>, 16>
!copy = !fly.tiled_copy<!load, <(64,4):(4,1)>, <[16|16]>>

// CHECK-LABEL: @atoms
func.func @atoms(%offset: i32, %layout: !fly.layout<(64,4):(4,1)>, %waves: !fly.layout<(2,1,1):(1,0,0)>) {
  // CHECK: %[[LOAD:.*]] = fly.make_copy_atom {valBits = 16 : i32} : !fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<64, cache = 2>, 16>
  %load = fly.make_copy_atom {valBits = 16 : i32} : !load
  // CHECK: fly.atom.set_value(%[[LOAD]], "soffset", %{{.*}}) : (!fly.copy_atom<
  %moved = fly.atom.set_value(%load, "soffset", %offset) : (!load, i32) -> !load
  // CHECK: %[[MFMA:.*]] = fly.make_mma_atom : !fly.mma_atom<!fly_rocdl.cdna3.mfma<32x32x8, (bf16, bf16) -> f32>>
  %mfma = fly.make_mma_atom : !mfma
  %tile = fly.static : !fly.tile<[16|16]>
  // CHECK: fly.make_tiled_copy(%{{.*}}) : (!fly.copy_atom<{{.*}}) -> !fly.tiled_copy<!fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<64, cache = 2>, 16>, !fly.layout<(64,4):(4,1)>, !fly.tile<[16|16]>>
  %copy = fly.make_tiled_copy(%moved, %layout, %tile) : (!load, !fly.layout<(64,4):(4,1)>, !fly.tile<[16|16]>) -> !copy
  // CHECK: fly.get_copy_atom(%{{.*}}) : (!fly.tiled_copy<
  %same = fly.get_copy_atom(%copy) : (!copy) -> !load
  %wide = fly.static : !fly.tile<[*|64|*]>
  // CHECK: fly.make_tiled_mma(%[[MFMA]], %{{.*}}, %{{.*}}) : {{.*}} -> !fly.tiled_mma<!fly.mma_atom<{{.*}}>, !fly.layout<(2,1,1):(1,0,0)>, !fly.tile<[*|64|*]>>
  %mma = fly.make_tiled_mma(%mfma, %waves, %wide) : (!mfma, !fly.layout<(2,1,1):(1,0,0)>, !fly.tile<[*|64|*]>) -> !mma
  return
}

// CHECK-LABEL: @parts
func.func @parts(%mma: !mma, %c: !fly.memref<f32, global, (64,64):(64,1)>, %thread: !fly.int_tuple<?>,
                 %frag: !fly.memref<bf16, register, (4,2,2):(1,4,8)>, %order: !fly.layout<(1,1,2):(1,1,1)>) {
  // CHECK: %[[D:.*]] = fly.mma.make_fragment(d, %{{.*}}, %{{.*}}) : {{.*}} -> !fly.memref<f32, register, ((4,4),1,2):((1,4),0,16)>
  %d = fly.mma.make_fragment(d, %mma, %c) : (!mma, !fly.memref<f32, global, (64,64):(64,1)>) -> !fly.memref<f32, register, ((4,4),1,2):((1,4),0,16)>
  // CHECK: fly.tiled_mma.partition(c, %{{.*}}, %{{.*}}, %{{.*}}) :
  %mine = fly.tiled_mma.partition(c, %mma, %c, %thread) : (!mma, !fly.memref<f32, global, (64,64):(64,1)>, !fly.int_tuple<?>) -> !fly.memref<f32, global, ((4,4),1,2):((64,512),0,32)>
  // CHECK: fly.gemm(%{{.*}}, %[[D]], %[[F:.*]], %[[F]], %[[D]]) traversalLayout = %{{.*}} : (
  fly.gemm(%mma, %d, %frag, %frag, %d) traversalLayout = %order : (!mma, !fly.memref<f32, register, ((4,4),1,2):((1,4),0,16)>, !fly.memref<bf16, register, (4,2,2):(1,4,8)>, !fly.memref<bf16, register, (4,2,2):(1,4,8)>, !fly.memref<f32, register, ((4,4),1,2):((1,4),0,16)>, !fly.layout<(1,1,2):(1,1,1)>) -> ()
  return
}
