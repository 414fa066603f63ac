"""Programs and test suites of others, run unchanged on `aiokwire.compat.aiokafka`.

aiokafka_suite  aiokafka's own tests     suite_plugin  their fixtures, without Docker
expected.toml   the tests that do not apply, with reasons
faststream_suite, ecosystem_suite  those of FastStream, and of taskiq's and OpenTelemetry's
                libraries                instrumented  what that records of our clients
programs        main loops of examples   program_checks  what they do in the broker
bench           what the layer costs
sources, environment  where the suites come from, and what they need beside our environment
"""
