"""Keys and values of records as columns: strings, JSON, Avro.

options    the options, as tasks receive them      decoding      batches decoded, `mode` applied
from_json, json_values                             from_avro, avro_plan, avro_types
registry   schemas by id and from files            dead_letters  bad records, sent to a topic
columns    shared by the decoders
"""
