"""The attacks of the security review, each with its bar: on the broker, and on our clients.

__main__   the command                       victim     another client, in its own process
on_broker  attacks on the embedded broker    hostile    a broker that attacks, in its own process
on_client  attacks on the clients            figures    what is measured, and its bars
"""
