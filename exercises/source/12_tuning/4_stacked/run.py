# NBVAL_CHECK_OUTPUT
a = torch.arange(6 * 5 * 20).reshape(6, 5, 20).remainder(7).half()
b = torch.arange(20 * 35).reshape(20, 35).remainder(5).half()
c, walk = in_a_batch(stacked, a, b)
wrong = int((c.float() != a.float() @ b.float()).sum())
loaded = sum(event.elements for event in walk.select(op="load", array="b"))
print(f"{wrong} of {c.numel()} elements are wrong")
print(f"elements of B loaded: {loaded / b.numel():g} times all of B")
