"""Transactions of a producer (KIP-98, 447, 890): block, driver, and requests to the coordinators.

block   the `async with` block    driver  drives the state machine  coordinator  requests, retried
states  the table of the machine  errors  what an error code means  requests     fields and versions
shared  one transaction of several producers                        open_transaction  its state
"""
