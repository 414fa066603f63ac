"""The attacks of the security review, each with its bar: on the broker, and on our clients.

__main__      the command                         figures  what is measured, and its bars
on_broker     attacks by requests                 target   the attacked broker process
on_directory  attacks by the data directory       victim   another client, in its own process
on_logins     attacks by logins                   hostile  a broker that attacks, in its own process
on_client     attacks on the clients
"""
