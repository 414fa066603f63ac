"""Keys and values of records as columns: strings, JSON, Avro.

options    the options, as tasks receive them      decoding    a batch decoded, bad records handled by `mode`
from_json, json_values                             from_avro, avro_plan, avro_types
registry   schemas by id                           schema_files  schemas that options name
columns    types that the decoders share           dead_letters  bad records, sent to a topic
"""
