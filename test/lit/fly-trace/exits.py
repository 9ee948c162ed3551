# Early exits: what follows `return` moves to the other side of the `if`; a loop that may end early is
# scf.while, one with `continue` alone stays scf.for.
# RUN: fly-trace %s:guard --no-loc | %filecheck %s --check-prefix=GUARD
# RUN: fly-trace %s:search --no-loc | %filecheck %s --check-prefix=SEARCH
# RUN: fly-trace %s:some --no-loc | %filecheck %s --check-prefix=SOME
import fly
import fly.expr as fx


def host(body):
    @fly.kernel
    def kernel(A: fx.Tensor, n: fx.Int32):
        body(A, n)

    def entry(A: fx.Tensor[fx.Int32, "n"], n: fx.Int32):
        kernel(A, n).launch(grid=1, block=64)

    return fly.jit(entry)


# GUARD: %[[TEST:.*]] = arith.cmpi sgt, %n
# GUARD-NEXT: scf.if %[[TEST]] {
# GUARD-NEXT: } else {
# GUARD: fly.memref.store
# GUARD: gpu.return
def leaves(A, n):
    if n > 3:
        return
    A[0] = 1


# The loop carries its counter, whether it has returned, and the value; the value is undefined before.
# SEARCH: %[[UNDEF:.*]] = ub.poison : i32
# SEARCH: %[[LOOP:.*]]:3 = scf.while (%{{.*}} = %{{.*}}, %[[LEFT:.*]] = %false, %{{.*}} = %[[UNDEF]])
# SEARCH: arith.cmpi slt
# SEARCH: arith.xori %[[LEFT]]
# SEARCH: scf.condition
# SEARCH: %[[TEST:.*]] = arith.cmpi eq
# SEARCH: scf.yield %{{.*}}, %[[TEST]], %{{.*}} : i32, i1, i32
# SEARCH: scf.if %[[LOOP]]#1
# SEARCH-NEXT: scf.yield %[[LOOP]]#2
def first(A, n):
    for i in range(n):
        if A[i] == 7:
            return i
    return -1


def found(A, n):
    A[0] = first(A, n)


# SOME: scf.for
# SOME-NOT: scf.while
# SOME: scf.if
# SOME: fly.memref.store
def several(A, n):
    for i in range(n):
        if A[i] == 7:
            continue
        A[i] = 3


guard, search, some = host(leaves), host(found), host(several)
