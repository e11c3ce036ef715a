"""table: what stands in a notebook."""

from tiled_matmul.microscope.table import table


def test_what_stands_between_backticks_is_code():
    made = table([{"line": "`a[i] < b`", "other": "a `"}])
    assert "<code>a[i] &lt; b</code>" in made._repr_html_() and ">a `<" in made._repr_html_()
    assert "`a[i] < b`" in repr(made)
