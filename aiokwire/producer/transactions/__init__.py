"""Transactions of a producer (KIP-98, 447, 890): the block, the driver, and the requests to the coordinators.

block  what programs hold        driver       states and errors of one producer     coordinator  requests, repeated
states the table of its machine  errors       what an error code leads to           requests     bytes and versions
shared one transaction of several producers   input_offsets  what a consumer read   open_transaction  the open one
"""
