"""A plugin of pytest that replaces the module `aiokafka` before tests are imported."""

from aiokwire.compat.aiokafka.replace import replace_aiokafka

replace_aiokafka()
