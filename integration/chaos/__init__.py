"""Clients and brokers that are killed, stopped and frozen while records flow, and an exact account of what is left.

faults   what befalls the broker, and when       ledger   where each record was acknowledged, or that it was not
load     the producer under test                 stored   what a reader finds in the topic, as a ledger
records  what the values look like               verdict  both ledgers side by side
run      all of it, once

transactions         read, work, write in transactions, and workers that are killed: each input counts once
transactions_worker  the process that is killed

`python -m integration.chaos produce` and `python -m integration.chaos.transactions` run it at full size,
`make integration` small.
"""
