# Python that can't mean on a GPU what it means in Python: file, line, caret, advice, exit 1.
# tests/fly_trace/language/refusals.txt has the rest of them.
# RUN: not fly-trace %s:raised 2>&1 | %filecheck %s --check-prefix=RAISE
# RUN: not fly-trace %s:after_loop 2>&1 | %filecheck %s --check-prefix=AFTER
# RUN: not fly-trace %s:one_sided 2>&1 | %filecheck %s --check-prefix=SIDE
# RUN: not fly-trace %s:changed_list 2>&1 | %filecheck %s --check-prefix=LIST
# RUN: not fly-trace %s:nothing 2>&1 | %filecheck %s --check-prefix=ENTRY
# RUN: not fly-trace %s 2>&1 | %filecheck %s --check-prefix=MANY
import fly
import fly.expr as fx


def host(body):
    @fly.kernel
    def kernel(A: fx.Tensor, n: fx.Int32):
        body(A, n)

    def entry(A: fx.Tensor[fx.Float32, "n"], n: fx.Int32):
        kernel(A, n).launch(grid=1, block=64)

    return fly.jit(entry)


# RAISE: fly-trace: error: {{.*}}refused.py:31:9: `raise` inside a dynamic `if`: a kernel can't raise an exception
# RAISE-NEXT: raise IndexError
# RAISE-NEXT: ^~~~~~
# RAISE-NEXT: called in kernel at {{.*}}refused.py:16:9: body(A, n)
# RAISE-NEXT: check it on the host
def raises(A, n):
    if n > 3:
        raise IndexError
    A[n] = 1.0


# AFTER: fly-trace: error: {{.*}}refused.py:41:7: `i` is the variable of a dynamic loop, which may not run at all
# AFTER-NEXT: A[i] = 2.0
# AFTER-NEXT: ^
def behind(A, n):
    for i in range(n):
        A[i] = 1.0
    A[i] = 2.0


# SIDE: error: {{.*}}refused.py:51:12: `value` is assigned where the dynamic `if` on line 49 is true, and has no value where it is false
# SIDE-NEXT: A[0] = value
# SIDE-NEXT: ^~~~~
# SIDE: assign value a value before the `if`
def sided(A, n):
    if n > 3:
        value = 1.0
    A[0] = value


# LIST: error: {{.*}}refused.py:60:9: append() modifies a Python list created outside this dynamic branch or loop
# LIST-NEXT: values.append(2.0)
# LIST-NEXT: ^~~~~~~~~~~~~~~~~~
def listed(A, n):
    values = [1.0]
    if n > 3:
        values.append(2.0)
    A[0] = values[0]


# ENTRY: fly-trace: error: {{.*}}refused.py: has no host function 'nothing'
# ENTRY-NEXT: its host functions: raised, after_loop, one_sided, changed_list
# MANY: fly-trace: error: {{.*}}refused.py: has 4 host functions
# MANY-NEXT: select one: {{.*}}refused.py:raised, {{.*}}refused.py:after_loop
raised, after_loop = host(raises), host(behind)
one_sided, changed_list = host(sided), host(listed)
