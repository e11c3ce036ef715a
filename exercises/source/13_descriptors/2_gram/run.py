# NBVAL_CHECK_OUTPUT
a, _ = Problem(70, 1, 35, "float16").inputs(kind="integers", device="cpu")
c, walk = by_its_transpose(gram, a)
wrong = int((c.float() != a.float() @ a.float().T).sum())
loaded = sum(event.elements for event in walk.select(op="load"))
print(f"{wrong} of {c.numel()} elements are wrong; loaded: {loaded / a.numel():g} times all of A")
