"""Kill, stop and freeze clients and brokers under load, and account for every record.

`produce`: acknowledged records, with
    run       one run: load, faults, and the comparison
    faults    the faults of a broker and their times
    load      the producer under test
    records   the format of the values
    ledger    offsets of acknowledged records, and failures
    stored    the content of the topic, as a ledger
    verdict   the comparison of both ledgers

`transactions`: read-process-write in transactions; each input counts once
    transactions_worker   the worker process that is killed

`rolling` and `consume`: groups whose members restart, or whose broker fails
    group         members, feed and checks
    member, feed  a consumer, a producer
    apart         a member process
    account       the records that members received
    moment        times, and waits for a CPU core
    rebalances    the generations of a group

`python -m integration.chaos produce` and `python -m integration.chaos.transactions` (`.rolling`,
`.consume`) run at full size, `make integration` at a small one.
"""
