"""A member of a group that uses the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

member       the driver: one coroutine per state        states           the table
decisions    what error codes mean; partitions          requests         bytes of the requests
leader       assigns the partitions to all members      generation       the id and the generation of a member
incompatibility  why there is no common assignor
"""
