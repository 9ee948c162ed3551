// RUN: fly-opt-py --fly-int-swizzle-simplify %s | FileCheck %s

// S<2,4,3> reads bits 7 and 8 (mask 384) and writes bits 4 and 5: it repeats every 512.

// A multiple of 512 comes out, wherever in the sum it stands; the rest is swizzled as before.
// CHECK-LABEL: func.func @constant_first(
// CHECK-SAME: %[[X:.*]]: i32)
// CHECK:      %[[C:.*]] = arith.constant 1536 : i32
// CHECK:      %[[A:.*]] = arith.andi %[[X]], %{{.*}} : i32
// CHECK-NEXT: %[[B:.*]] = arith.shrui %[[A]], %{{.*}} : i32
// CHECK-NEXT: %[[S:.*]] = arith.xori %[[X]], %[[B]] : i32
// CHECK-NEXT: %[[R:.*]] = arith.addi %[[S]], %[[C]] : i32
// CHECK-NEXT: return %[[R]]
func.func @constant_first(%x: i32) -> i32 {
  %c = arith.constant 1536 : i32
  %mask = arith.constant 384 : i32
  %shift = arith.constant 3 : i32
  %y = arith.addi %c, %x : i32
  %a = arith.andi %y, %mask : i32
  %b = arith.shrui %a, %shift : i32
  %r = arith.xori %y, %b : i32
  return %r : i32
}

// (x·1024 + y) + 5: the product is deep inside; y + 5 stays together.
// CHECK-LABEL: func.func @deep(
// CHECK-SAME: %[[X:.*]]: i64, %[[Y:.*]]: i64)
// CHECK:      %[[P:.*]] = arith.muli %[[X]]
// CHECK:      %[[K:.*]] = arith.addi %[[Y]], %{{.*}} : i64
// CHECK:      %[[S:.*]] = arith.xori %[[K]]
// CHECK-NEXT: %[[R:.*]] = arith.addi %[[S]], %[[P]] : i64
// CHECK-NEXT: return %[[R]]
func.func @deep(%x: i64, %y: i64) -> i64 {
  %rows = arith.constant 1024 : i64
  %five = arith.constant 5 : i64
  %mask = arith.constant 384 : i64
  %shift = arith.constant 3 : i64
  %p = arith.muli %x, %rows : i64
  %q = arith.addi %p, %y : i64
  %s = arith.addi %q, %five : i64
  %a = arith.andi %s, %mask : i64
  %b = arith.shrui %a, %shift : i64
  %r = arith.xori %s, %b : i64
  return %r : i64
}

// What an int_tuple's type says of an integer holds for the integer.
// CHECK-LABEL: func.func @said_by_a_type(
// CHECK-SAME: %[[X:.*]]: i32, %[[D:.*]]: i32)
// CHECK:      %[[S:.*]] = arith.xori %[[X]]
// CHECK-NEXT: %[[R:.*]] = arith.addi %[[S]], %[[D]] : i32
// CHECK-NEXT: return %[[R]]
func.func @said_by_a_type(%x: i32, %d: i32) -> i32 {
  %t = fly.make_int_tuple(%x, %d) : (i32, i32) -> !fly.int_tuple<(?,?{div=512})>
  %mask = arith.constant 384 : i32
  %shift = arith.constant 3 : i32
  %y = arith.addi %x, %d : i32
  %a = arith.andi %y, %mask : i32
  %b = arith.shrui %a, %shift : i32
  %r = arith.xori %y, %b : i32
  return %r : i32
}

// Shifts, selections and masks say what divides their results, too; nothing is left to swizzle.
// CHECK-LABEL: func.func @all_of_it(
// CHECK:      %[[L:.*]] = arith.shli
// CHECK:      %[[P:.*]] = arith.select
// CHECK:      %[[Z:.*]] = arith.constant 0 : i32
// CHECK-NEXT: %[[Q:.*]] = arith.addi %[[Z]], %{{.*}} : i32
// CHECK-NEXT: return %[[Q]]
// CHECK-NOT:  arith.xori
func.func @all_of_it(%x: i32, %which: i1) -> i32 {
  %nine = arith.constant 9 : i32
  %high = arith.constant -512 : i32
  %mask = arith.constant 384 : i32
  %shift = arith.constant 3 : i32
  %l = arith.shli %x, %nine : i32
  %m = arith.andi %x, %high : i32
  %p = arith.select %which, %l, %m : i32
  %a = arith.andi %p, %mask : i32
  %b = arith.shrui %a, %shift : i32
  %r = arith.xori %p, %b : i32
  return %r : i32
}

// 256 is no multiple of the period; and where the mask is no run of ones, or bits fall off below,
// it is no swizzle.
// CHECK-LABEL: func.func @stays(
// CHECK-SAME: %[[X:.*]]: i32)
// CHECK:      %[[Y:.*]] = arith.addi %[[X]], %c256_i32 : i32
// CHECK:      arith.xori %[[Y]]
// CHECK:      %[[W:.*]] = arith.addi %[[X]], %c1024_i32 : i32
// CHECK:      arith.xori %[[W]]
// CHECK:      arith.xori %[[W]]
// CHECK-NEXT: return
func.func @stays(%x: i32) -> (i32, i32, i32) {
  %c256 = arith.constant 256 : i32
  %c1024 = arith.constant 1024 : i32
  %mask = arith.constant 384 : i32
  %holes = arith.constant 320 : i32
  %shift = arith.constant 3 : i32
  %far = arith.constant 8 : i32
  %y = arith.addi %x, %c256 : i32
  %a0 = arith.andi %y, %mask : i32
  %b0 = arith.shrui %a0, %shift : i32
  %r0 = arith.xori %y, %b0 : i32
  %w = arith.addi %x, %c1024 : i32
  %a1 = arith.andi %w, %holes : i32
  %b1 = arith.shrui %a1, %shift : i32
  %r1 = arith.xori %w, %b1 : i32
  %a2 = arith.andi %w, %mask : i32
  %b2 = arith.shrui %a2, %far : i32
  %r2 = arith.xori %w, %b2 : i32
  return %r0, %r1, %r2 : i32, i32, i32
}
