"""One module per API, named as in `ApiKey`; each has `handle(request, call)`, and its head says what it does.

`aiokwire.broker.dispatch` loads them when first asked for. `MISSING.md` lists what they leave out.
"""
