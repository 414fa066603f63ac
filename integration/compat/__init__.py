"""Programs and test suites of others, run unchanged on `aiokwire.compat.aiokafka`.

aiokafka_suite  aiokafka's own tests     suite_plugin  their fixtures, without Docker
expected.toml   the tests that do not apply, with reasons
programs        FastStream and others    bench         what the layer costs
sources, environment  where the suites come from, and what they need beside our environment
"""
