# Python that can't mean on a GPU what it means in Python: file, line, caret, advice, exit 1.
# tests/fly_trace/refusals.txt has the rest of them.
# RUN: not fly-trace %s:early_return 2>&1 | %filecheck %s --check-prefix=RETURN
# RUN: not fly-trace %s:loop_else 2>&1 | %filecheck %s --check-prefix=ELSE
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


# RETURN: fly-trace: error: {{.*}}refused.py:30:9: `return` inside a dynamic `if` or `while`: the work items would diverge here
# RETURN-NEXT: return
# RETURN-NEXT: ^~~~~~
# RETURN-NEXT: put the following code in the `else`
def returns(A, n):
    if n > 3:
        return
    A[n] = 1.0


# ELSE: fly-trace: error: {{.*}}refused.py:41:9: `else` on a loop over a dynamic range
# ELSE-NEXT: A[0] = 2.0
# ELSE-NEXT: ^~~~~~~~
def otherwise(A, n):
    for i in range(n):
        A[i] = 1.0
    else:
        A[0] = 2.0


# SIDE: error: {{.*}}refused.py:51:12: `value` is assigned on only one side of the dynamic `if` on line 49
# SIDE-NEXT: A[0] = value
# SIDE-NEXT: ^~~~~
# SIDE-NEXT: assign value a value before the `if`
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
# ENTRY-NEXT: its host functions: early_return, loop_else, one_sided, changed_list
# MANY: fly-trace: error: {{.*}}refused.py: has 4 host functions
# MANY-NEXT: select one: {{.*}}refused.py:early_return, {{.*}}refused.py:loop_else
early_return, loop_else = host(returns), host(otherwise)
one_sided, changed_list = host(sided), host(listed)
