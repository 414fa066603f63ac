"""Kill, stop and freeze clients and brokers under load, and account for every record.

faults   the broker's faults and their times      ledger   offsets of acknowledged records, failures
load     the producer under test                 stored   the content of the topic, as a ledger
records  the format of the values                verdict  the comparison of both ledgers
run      one run of all of these

transactions         read-process-write in transactions with killed workers: each input counts once
transactions_worker  the worker process

rolling  members restart one after the other        account  the records that members received
consume  a group reads while its broker fails       moment   times, and waits for a CPU core
group    members, feed and checks of both    member, feed  a consumer, a producer     apart  a process
rebalances  the group's generations

`python -m integration.chaos produce` and `python -m integration.chaos.transactions` (`.rolling`,
`.consume`) run at full size, `make integration` at a small one.
"""
