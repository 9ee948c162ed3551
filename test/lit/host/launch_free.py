# Programs that launch no kernel: library calls alone, a view of a parameter. The object has no function; a module flag names its processor.
# RUN: fly-trace %s:product | fly-opt-py --target gfx942 --emit host | %filecheck %s --match-full-lines
# RUN: fly-trace %s:transposed | fly-opt-py --target gfx942 --emit host | %filecheck %s --match-full-lines --check-prefix=VIEW
# RUN: fly-trace %s:transposed | fly-opt-py --target gfx1201 | %filecheck %s --check-prefix=FLAG
# RUN: fly-trace %s:product | fly-opt-py --target gfx1100 | opt -S -O3 | fly-llc | fly-link -o %t.hsaco
# RUN: %PYTHON -c "import numpy, sys; numpy.save(sys.argv[1], numpy.arange(6, dtype='f').reshape(2, 3)); numpy.save(sys.argv[2], numpy.ones([3, 4], 'f'))" %t.A.npy %t.ones.npy
# RUN: fly-run %t.hsaco A=%t.A.npy B=%t.ones.npy C=%t.C.npy -q
# RUN: %PYTHON -c "import numpy, sys; assert numpy.load(sys.argv[1]).tolist() == [[3] * 4, [12] * 4]" %t.C.npy
# RUN: fly-trace %s:transposed | fly-opt-py --target gfx942 | fly-llc | fly-link | fly-run A=%t.A.npy B=%t.B.npy -q
# RUN: %PYTHON -c "import numpy, sys; assert numpy.load(sys.argv[1]).tolist() == [[0, 3], [1, 4], [2, 5]]" %t.B.npy
# RUN: not fly-trace %s:nothing 2>&1 | %filecheck %s --check-prefix=NOTHING
import fly
import fly.expr as fx


# CHECK: program product for gfx942
# CHECK: steps
# CHECK-NEXT:   check B.shape[0] == A.shape[1] else {{.*}}
# CHECK-NEXT:   call C = numpy.matmul(A, B)
# CHECK-NEXT: returns C
@fly.jit
def product(A: fx.Tensor[fx.Float32, "m", "k"], B: fx.Tensor[fx.Float32, "k", "n"]):
    C = fx.call("numpy.matmul", A, B)
    return C


# The view has to lie in the tensor's memory.
# VIEW: program transposed for gfx942
# VIEW: steps
# VIEW-NEXT:   check {{.*}} else "B: the view reaches over {{.*}} elements, and A over {{.*}}"
# VIEW-NEXT: returns A at 0: [A.shape[1], A.shape[0]] strides [1, A.shape[1]] as B
# FLAG: !{i32 1, !"target-cpu", !"gfx1201"}
@fly.jit
def transposed(A: fx.Tensor[fx.Float32, "m", "n"]):
    m, n = A.shape[0], A.shape[1]
    B = fx.make_view(fx.get_iter(A), fx.make_layout((n, m), (1, n)))
    return B


# NOTHING: launch_free.py:{{[0-9]+}}:1: the host function nothing does nothing: it launches no kernel, calls no library function and returns nothing
@fly.jit
def nothing(A: fx.Tensor[fx.Float32, "m", "n"]):
    pass
