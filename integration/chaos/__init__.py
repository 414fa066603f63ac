"""Kill, stop and freeze clients and brokers under load, and account for every record.

faults   the broker's faults and their times      ledger   the offset of each acknowledged record, and failures
load     the producer under test                 stored   the content of the topic, as a ledger
records  the format of the values                verdict  the comparison of both ledgers
run      one run of all of these

transactions         read-process-write in transactions with killed workers: each input counts once
transactions_worker  the worker process

rolling  members of a group restart one after the other     account  the records that members received
consume  a group reads while its broker fails and returns     moment   times, and waits for a CPU core
group    members, feed and verdict of both    member, feed  a consumer, a producer     apart  a member process
rebalances  the group's generations

`python -m integration.chaos produce` and `python -m integration.chaos.transactions` (`.rolling`,
`.consume`) run at full size, `make integration` at a small one.
"""
