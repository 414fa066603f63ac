"""A member of a group that uses the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

member            one coroutine per state
states            state table
decisions         meaning of error codes, revoked and added partitions
requests          requests in all versions
leader            assigns the partitions to all members
generation        id and generation of a member
"""
