"""One module per API, named as in `ApiKey`; each has `handle(request, call)` and describes its API in its docstring.

`aiokwire.broker.dispatch` loads each at its first request. `MISSING.md` lists what they leave out.
"""
