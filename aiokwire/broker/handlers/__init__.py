"""One module per API, named as in `ApiKey`: `handle(request, call)`; its docstring describes it.

`aiokwire.broker.dispatch` loads each at its first request. `MISSING.md` lists what they leave out.
"""
