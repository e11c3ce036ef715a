# NBVAL_CHECK_OUTPUT
a, b = Problem(200, 35, 20, "float16").inputs(kind="integers", device="cpu")
c, walk = by_few_programs(kept, a, b, programs=4)
print(f"{int((c.float() != a.float() @ b.float()).sum())} of {c.numel()} elements are wrong")
for name, x in (("A", a), ("B", b)):
    loaded = sum(event.elements for event in walk.select(op="load", array=name.lower()))
    print(f"elements of {name} loaded: {loaded / x.numel():g} times all of {name}")
