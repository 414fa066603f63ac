"""Clients and brokers that are killed, stopped and frozen while records flow, and an exact account of what is left.

faults   what befalls the broker, and when       ledger   where each record was acknowledged, or that it was not
load     the producer under test                 stored   what a reader finds in the topic, as a ledger
records  what the values look like               verdict  both ledgers side by side
run      all of it, once

transactions         read, work, write in transactions, and workers that are killed: each input counts once
transactions_worker  the process that is killed

rolling  members of a group that are restarted one after the other     account  what members were handed
consume  a group that reads while its broker goes and comes            moment   time, and waits for a core
group    members, feed and verdict of both    member, feed  a consumer, a producer     apart  a member as a process
rebalances  the group's generations

`python -m integration.chaos produce`, and `.transactions`, `.rolling`, `.consume` behind `integration.chaos`, run it at
full size, `make integration` small.
"""
