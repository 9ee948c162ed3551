// Conversions of floats of 8 bits and less: the target's instructions, by groups that fill words.
// RUN: fly-opt-py --fly-set-target=chip=gfx950 --fly-select-math %s | %filecheck %s
// RUN: sed "s/E4M3FN/E4M3FNUZ/g" %s | not fly-opt-py --fly-set-target=chip=gfx950 --fly-select-math 2>&1 | %filecheck %s --check-prefix=OTHER
// RUN: not fly-opt-py --fly-set-target=chip=gfx1201 --fly-select-math %s 2>&1 | %filecheck %s --check-prefix=FEWER
// RUN: not fly-opt-py --fly-select-math %s 2>&1 | %filecheck %s --check-prefix=NONE

// OTHER: gfx950 has no conversion between f8E4M3FNUZ and f32
// OTHER: supported conversions: f8E4M3FN, f8E5M2, f6E2M3FN, f6E3M2FN, f4E2M1FN
// FEWER: gfx1201 has no conversion between f4E2M1FN and f32
// FEWER: supported conversions: f8E4M3FN, f8E5M2{{$}}
// NONE: a module without a target has no conversion between f8E4M3FN and f32

// Three elements: a word of four, of which the last is not asked for.
// CHECK-LABEL: func.func @eight(
// CHECK: %[[V:.*]] = vector.shuffle %{{.*}} [0, 1, 2, 2] : vector<3xi8>, vector<3xi8>
// CHECK: vector.bitcast %[[V]] : vector<4xi8> to vector<1xi32>
// CHECK: rocdl.cvt.pk.f32.fp8 %{{.*}}[false]
// CHECK: rocdl.cvt.pk.f32.fp8 %{{.*}}[true]
// CHECK: %[[L:.*]] = rocdl.cvt.pk.bf8.f32 %{{.*}} -> %{{.*}}[false] : i32
// CHECK: rocdl.cvt.pk.bf8.f32 %{{.*}} -> %[[L]][true] : i32
func.func @eight(%x: vector<3xf8E4M3FN>) -> vector<3xf8E5M2> {
  %0 = arith.extf %x : vector<3xf8E4M3FN> to vector<3xf32>
  %1 = arith.truncf %0 : vector<3xf32> to vector<3xf8E5M2>
  return %1 : vector<3xf8E5M2>
}

// A byte of the word at a time; f16 by way of f32.
// CHECK-LABEL: func.func @four(
// CHECK-COUNT-4: rocdl.cvt.scalef32.pk.f32.fp4
// CHECK: arith.truncf %{{.*}} : vector<8xf32> to vector<8xf16>
func.func @four(%x: vector<8xf4E2M1FN>) -> vector<8xf16> {
  %0 = arith.extf %x : vector<8xf4E2M1FN> to vector<8xf16>
  return %0 : vector<8xf16>
}

// Six words hold 32 elements; back, even and odd ones are two operands.
// CHECK-LABEL: func.func @six(
// CHECK: rocdl.cvt.scalef32.pk32.f32.bf6 %{{.*}} : vector<32xf32>
// CHECK: vector.shuffle %{{.*}} [0, 2, 4, {{.*}}, 30]
// CHECK: vector.shuffle %{{.*}} [1, 3, 5, {{.*}}, 31]
// CHECK: rocdl.cvt.scalef32.2xpk16.fp6.f32
func.func @six(%x: vector<32xf6E3M2FN>) -> vector<32xf6E2M3FN> {
  %0 = arith.extf %x : vector<32xf6E3M2FN> to vector<32xf32>
  %1 = arith.truncf %0 : vector<32xf32> to vector<32xf6E2M3FN>
  return %1 : vector<32xf6E2M3FN>
}

// A scale is the exponent of an f32: shifts.
// CHECK-LABEL: func.func @scale(
// CHECK-NOT: rocdl
// CHECK: arith.shli
// CHECK: arith.shrui
// CHECK: return
func.func @scale(%x: f8E8M0FNU) -> f8E8M0FNU {
  %0 = arith.extf %x : f8E8M0FNU to f32
  %1 = arith.truncf %0 : f32 to f8E8M0FNU
  return %1 : f8E8M0FNU
}
