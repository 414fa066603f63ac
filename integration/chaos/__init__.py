"""A broker that is killed, stopped and frozen while records flow, and an exact account of what became of them.

faults   what befalls the broker, and when: drawn from a seed     ledger   where each record was, or was not, acknowledged
load     the producer under test, and its account                 stored   what a reader finds in the topic
verdict  the account beside what was found                        run      all of it, once

`python -m integration.chaos produce` runs it at full size, `make integration` small.
"""
