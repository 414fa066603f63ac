"""Every topic and broker config of Kafka 4.3.1, one per line; `aiokwire.broker.configs` reads them.

Columns: name, type, default (`-` is null), bounds (`least..most`, or choices between bars, `-` is
anything) and `dynamic` for a broker config that may be changed while the broker runs. Defaults are
Kafka's, except where one broker on a laptop needs others: one replica of everything, four
partitions, no delay before a group's first rebalance, no lower bound for the size of segments.
"""

from __future__ import annotations

MINUTE = 60_000
HOUR = 3_600_000

# Topic config -> broker configs that stand in for it; the first that is set wins, the number turns its unit into ours.
SYNONYMS: dict[str, tuple[tuple[str, int], ...]] = {
    "cleanup.policy": (("log.cleanup.policy", 1),),
    "compression.gzip.level": (("compression.gzip.level", 1),),
    "compression.lz4.level": (("compression.lz4.level", 1),),
    "compression.type": (("compression.type", 1),),
    "compression.zstd.level": (("compression.zstd.level", 1),),
    "delete.retention.ms": (("log.cleaner.delete.retention.ms", 1),),
    "file.delete.delay.ms": (("log.segment.delete.delay.ms", 1),),
    "flush.messages": (("log.flush.interval.messages", 1),),
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    "index.interval.bytes": (("log.index.interval.bytes", 1),),
    "local.retention.bytes": (("log.local.retention.bytes", 1),),
    "local.retention.ms": (("log.local.retention.ms", 1),),
    "max.compaction.lag.ms": (("log.cleaner.max.compaction.lag.ms", 1),),
    "max.message.bytes": (("message.max.bytes", 1),),
    "message.timestamp.after.max.ms": (("log.message.timestamp.after.max.ms", 1),),
    "message.timestamp.before.max.ms": (("log.message.timestamp.before.max.ms", 1),),
    "message.timestamp.type": (("log.message.timestamp.type", 1),),
    "min.cleanable.dirty.ratio": (("log.cleaner.min.cleanable.ratio", 1),),
    "min.compaction.lag.ms": (("log.cleaner.min.compaction.lag.ms", 1),),
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "preallocate": (("log.preallocate", 1),),
    "retention.bytes": (("log.retention.bytes", 1),),
    "retention.ms": (("log.retention.ms", 1), ("log.retention.minutes", MINUTE), ("log.retention.hours", HOUR)),
    "segment.bytes": (("log.segment.bytes", 1),),
    "segment.index.bytes": (("log.index.size.max.bytes", 1),),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", HOUR)),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", HOUR)),
    "unclean.leader.election.enable": (("unclean.leader.election.enable", 1),),
}

TOPIC_CONFIGS = """
cleanup.policy LIST delete compact|delete
compression.gzip.level INT -1 -1..9
compression.lz4.level INT 9 1..17
compression.type STRING producer uncompressed|zstd|lz4|snappy|gzip|producer
compression.zstd.level INT 3 -131072..22
delete.retention.ms LONG 86400000 0..
file.delete.delay.ms LONG 60000 0..
flush.messages LONG 9223372036854775807 1..
flush.ms LONG 9223372036854775807 0..
follower.replication.throttled.replicas LIST "" -
index.interval.bytes INT 4096 0..
leader.replication.throttled.replicas LIST "" -
local.retention.bytes LONG -2 -2..
local.retention.ms LONG -2 -2..
max.compaction.lag.ms LONG 9223372036854775807 1..
max.message.bytes INT 1048588 0..
message.timestamp.after.max.ms LONG 3600000 0..
message.timestamp.before.max.ms LONG 9223372036854775807 0..
message.timestamp.type STRING CreateTime CreateTime|LogAppendTime
min.cleanable.dirty.ratio DOUBLE 0.5 0..1
min.compaction.lag.ms LONG 0 0..
min.insync.replicas INT 1 1..
preallocate BOOLEAN false -
remote.log.copy.disable BOOLEAN false -
remote.log.delete.on.disable BOOLEAN false -
remote.storage.enable BOOLEAN false -
retention.bytes LONG -1 -
retention.ms LONG 604800000 -1..
segment.bytes INT 1073741824 14..
segment.index.bytes INT 10485760 4..
segment.jitter.ms LONG 0 0..
segment.ms LONG 604800000 1..
unclean.leader.election.enable BOOLEAN false -
"""

BROKER_CONFIGS = """
add.partitions.to.txn.retry.backoff.max.ms INT 100 0..
add.partitions.to.txn.retry.backoff.ms INT 20 1..
advertised.listeners LIST - -
allow.everyone.if.no.acl.found BOOLEAN false -
alter.config.policy.class.name CLASS - -
alter.log.dirs.replication.quota.window.num INT 11 1..
alter.log.dirs.replication.quota.window.size.seconds INT 1 1..
authorizer.class.name STRING "" -
auto.create.topics.enable BOOLEAN true -
auto.leader.rebalance.enable BOOLEAN true -
background.threads INT 10 1.. dynamic
broker.heartbeat.interval.ms INT 2000 -
broker.id INT -1 -
broker.rack STRING - -
broker.session.timeout.ms INT 9000 -
client.quota.callback.class CLASS - -
compression.gzip.level INT -1 -1..9 dynamic
compression.lz4.level INT 9 1..17 dynamic
compression.type STRING producer uncompressed|zstd|lz4|snappy|gzip|producer dynamic
compression.zstd.level INT 3 -131072..22 dynamic
config.providers LIST "" - dynamic
connection.failed.authentication.delay.ms INT 100 0..
connections.max.idle.ms LONG 600000 -
connections.max.reauth.ms LONG 0 -
controlled.shutdown.enable BOOLEAN true -
controller.listener.names LIST CONTROLLER -
controller.quorum.append.linger.ms INT 25 0..
controller.quorum.auto.join.enable BOOLEAN false -
controller.quorum.bootstrap.servers LIST "" -
controller.quorum.election.backoff.max.ms INT 1000 0..
controller.quorum.election.timeout.ms INT 1000 0..
controller.quorum.fetch.max.bytes INT 1048576 1..
controller.quorum.fetch.snapshot.max.bytes INT 1048576 1..
controller.quorum.fetch.timeout.ms INT 2000 0..
controller.quorum.request.timeout.ms INT 2000 0..
controller.quorum.retry.backoff.ms INT 20 0..
controller.quorum.voters LIST "" -
controller.quota.window.num INT 11 1..
controller.quota.window.size.seconds INT 1 1..
controller.socket.timeout.ms INT 30000 -
cordoned.log.dirs LIST "" - dynamic
create.topic.policy.class.name CLASS - -
default.replication.factor INT 1 -
delegation.token.expiry.check.interval.ms LONG 3600000 1..
delegation.token.expiry.time.ms LONG 86400000 1..
delegation.token.max.lifetime.ms LONG 604800000 1..
delegation.token.secret.key PASSWORD - -
delete.records.purgatory.purge.interval.requests INT 1 -
delete.topic.enable BOOLEAN true -
early.start.listeners LIST - -
fetch.max.bytes INT 57671680 1024..
fetch.purgatory.purge.interval.requests INT 1000 -
follower.fetch.last.tiered.offset.enable BOOLEAN false - dynamic
group.consumer.assignment.interval.ms INT 1000 0.. dynamic
group.consumer.assignors LIST uniform,range -
group.consumer.heartbeat.interval.ms INT 5000 1..
group.consumer.max.assignment.interval.ms INT 15000 0..
group.consumer.max.heartbeat.interval.ms INT 15000 1..
group.consumer.max.session.timeout.ms INT 60000 1..
group.consumer.max.size INT 2147483647 1..
group.consumer.migration.policy STRING bidirectional DISABLED|DOWNGRADE|UPGRADE|BIDIRECTIONAL
group.consumer.min.assignment.interval.ms INT 0 0..
group.consumer.min.heartbeat.interval.ms INT 5000 1..
group.consumer.min.session.timeout.ms INT 45000 1..
group.consumer.session.timeout.ms INT 45000 1..
group.coordinator.append.linger.ms INT -1 -1..
group.coordinator.background.threads INT 2 1..
group.coordinator.cached.buffer.max.bytes INT 1048588 524288.. dynamic
group.coordinator.rebalance.protocols LIST classic,consumer,streams consumer|classic|share|streams
group.coordinator.threads INT 4 1..
group.initial.rebalance.delay.ms INT 0 -
group.max.session.timeout.ms INT 1800000 -
group.max.size INT 2147483647 1..
group.min.session.timeout.ms INT 6000 -
group.share.assignment.interval.ms INT 1000 0.. dynamic
group.share.assignors LIST simple -
group.share.delivery.count.limit INT 5 2..10
group.share.heartbeat.interval.ms INT 5000 1..
group.share.max.assignment.interval.ms INT 15000 0..
group.share.max.delivery.count.limit INT 10 5..25
group.share.max.heartbeat.interval.ms INT 15000 1..
group.share.max.partition.max.record.locks INT 4000 2000..10000
group.share.max.record.lock.duration.ms INT 60000 30000..3600000
group.share.max.session.timeout.ms INT 60000 1..
group.share.max.share.sessions INT 2000 1..
group.share.max.size INT 200 1..1000
group.share.min.assignment.interval.ms INT 0 0..
group.share.min.delivery.count.limit INT 2 2..5
group.share.min.heartbeat.interval.ms INT 5000 1..
group.share.min.partition.max.record.locks INT 100 100..2000
group.share.min.record.lock.duration.ms INT 15000 1000..30000
group.share.min.session.timeout.ms INT 45000 1..
group.share.partition.max.record.locks INT 2000 100..10000
group.share.record.lock.duration.ms INT 30000 1000..3600000
group.share.session.timeout.ms INT 45000 1..
group.streams.assignment.interval.ms INT 1000 0.. dynamic
group.streams.heartbeat.interval.ms INT 5000 1..
group.streams.initial.rebalance.delay.ms INT 3000 0..
group.streams.max.assignment.interval.ms INT 15000 0..
group.streams.max.heartbeat.interval.ms INT 15000 1..
group.streams.max.session.timeout.ms INT 60000 1..
group.streams.max.size INT 2147483647 1..
group.streams.max.standby.replicas INT 2 0..
group.streams.min.assignment.interval.ms INT 0 0..
group.streams.min.heartbeat.interval.ms INT 5000 1..
group.streams.min.session.timeout.ms INT 45000 1..
group.streams.num.standby.replicas INT 0 0..
group.streams.session.timeout.ms INT 45000 1..
initial.broker.registration.timeout.ms INT 60000 -
inter.broker.listener.name STRING - -
kafka.metrics.polling.interval.secs INT 10 1..
kafka.metrics.reporters LIST "" -
leader.imbalance.check.interval.seconds LONG 300 1..
listener.security.protocol.map STRING PLAINTEXT:PLAINTEXT - dynamic
listeners LIST PLAINTEXT://127.0.0.1:0 - dynamic
log.cleaner.backoff.ms LONG 15000 0.. dynamic
log.cleaner.dedupe.buffer.size LONG 134217728 - dynamic
log.cleaner.delete.retention.ms LONG 86400000 0.. dynamic
log.cleaner.enable BOOLEAN true -
log.cleaner.io.buffer.load.factor DOUBLE 0.9 - dynamic
log.cleaner.io.buffer.size INT 524288 0.. dynamic
log.cleaner.io.max.bytes.per.second DOUBLE 1.7976931348623157E308 - dynamic
log.cleaner.max.compaction.lag.ms LONG 9223372036854775807 1.. dynamic
log.cleaner.min.cleanable.ratio DOUBLE 0.5 0..1 dynamic
log.cleaner.min.compaction.lag.ms LONG 0 0.. dynamic
log.cleaner.threads INT 1 0.. dynamic
log.cleanup.policy LIST delete compact|delete dynamic
log.dir LIST - -
log.dir.failure.timeout.ms LONG 30000 1..
log.dirs LIST - -
log.flush.interval.messages LONG 9223372036854775807 1.. dynamic
log.flush.interval.ms LONG - - dynamic
log.flush.offset.checkpoint.interval.ms INT 60000 0..
log.flush.scheduler.interval.ms LONG 9223372036854775807 -
log.flush.start.offset.checkpoint.interval.ms INT 60000 0..
log.index.interval.bytes INT 4096 0.. dynamic
log.index.size.max.bytes INT 10485760 4.. dynamic
log.local.retention.bytes LONG -2 -2.. dynamic
log.local.retention.ms LONG -2 -2.. dynamic
log.message.timestamp.after.max.ms LONG 3600000 0.. dynamic
log.message.timestamp.before.max.ms LONG 9223372036854775807 0.. dynamic
log.message.timestamp.type STRING CreateTime CreateTime|LogAppendTime dynamic
log.preallocate BOOLEAN false - dynamic
log.retention.bytes LONG -1 - dynamic
log.retention.check.interval.ms LONG 300000 1..
log.retention.hours INT 168 -
log.retention.minutes INT - -
log.retention.ms LONG - - dynamic
log.roll.hours INT 168 1..
log.roll.jitter.hours INT 0 0..
log.roll.jitter.ms LONG - - dynamic
log.roll.ms LONG - - dynamic
log.segment.bytes INT 1073741824 14.. dynamic
log.segment.delete.delay.ms LONG 60000 0.. dynamic
max.connection.creation.rate INT 2147483647 0.. dynamic
max.connections INT 10000 0.. dynamic
max.connections.per.ip INT 2147483647 0.. dynamic
max.connections.per.ip.overrides STRING "" - dynamic
max.incremental.fetch.session.cache.slots INT 1000 0..
max.request.partition.size.limit INT 2000 1..
message.max.bytes INT 1048588 0.. dynamic
metadata.log.dir STRING - -
metadata.log.max.record.bytes.between.snapshots LONG 20971520 1..
metadata.log.max.snapshot.interval.ms LONG 3600000 0..
metadata.log.segment.bytes INT 1073741824 8388608..
metadata.log.segment.ms LONG 604800000 -
metadata.max.idle.interval.ms INT 500 0..
metadata.max.retention.bytes LONG 104857600 -
metadata.max.retention.ms LONG 604800000 -
metric.reporters LIST org.apache.kafka.common.metrics.JmxReporter - dynamic
metrics.num.samples INT 2 1..
metrics.recording.level STRING INFO -
metrics.sample.window.ms LONG 30000 1..
min.insync.replicas INT 1 1.. dynamic
node.id INT 1 0..
num.io.threads INT 8 1.. dynamic
num.network.threads INT 3 1.. dynamic
num.partitions INT 4 1..
num.recovery.threads.per.data.dir INT 2 1.. dynamic
num.replica.alter.log.dirs.threads INT - -
num.replica.fetchers INT 1 1.. dynamic
offset.metadata.max.bytes INT 4096 -
offsets.commit.timeout.ms INT 5000 1..
offsets.load.buffer.size INT 5242880 1..
offsets.retention.check.interval.ms LONG 600000 1..
offsets.retention.minutes INT 10080 1..
offsets.topic.compression.codec INT 0 -
offsets.topic.num.partitions INT 50 1..
offsets.topic.replication.factor SHORT 1 1..
offsets.topic.segment.bytes INT 104857600 1..
principal.builder.class CLASS org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder - dynamic
process.roles LIST broker,controller broker|controller
producer.id.expiration.ms INT 86400000 1.. dynamic
producer.purgatory.purge.interval.requests INT 1000 -
queued.max.request.bytes LONG 268435456 -
queued.max.requests INT 500 1..
quota.window.num INT 11 1..
quota.window.size.seconds INT 1 1..
remote.fetch.max.wait.ms INT 500 1.. dynamic
remote.list.offsets.request.timeout.ms LONG 30000 1.. dynamic
remote.log.index.file.cache.total.size.bytes LONG 1073741824 1.. dynamic
remote.log.manager.copier.thread.pool.size INT 10 1.. dynamic
remote.log.manager.copy.max.bytes.per.second LONG 9223372036854775807 1.. dynamic
remote.log.manager.copy.quota.window.num INT 11 1..
remote.log.manager.copy.quota.window.size.seconds INT 1 1..
remote.log.manager.expiration.thread.pool.size INT 10 1.. dynamic
remote.log.manager.fetch.max.bytes.per.second LONG 9223372036854775807 1.. dynamic
remote.log.manager.fetch.quota.window.num INT 11 1..
remote.log.manager.fetch.quota.window.size.seconds INT 1 1..
remote.log.manager.follower.thread.pool.size INT 2 1.. dynamic
remote.log.manager.task.interval.ms LONG 30000 1..
remote.log.manager.thread.pool.size INT 2 1..
remote.log.metadata.custom.metadata.max.bytes INT 128 0..
remote.log.metadata.manager.class.name STRING - -
remote.log.metadata.manager.class.path STRING - -
remote.log.metadata.manager.impl.prefix STRING rlmm.config. -
remote.log.metadata.manager.listener.name STRING - -
remote.log.reader.max.pending.tasks INT 100 1..
remote.log.reader.threads INT 10 1.. dynamic
remote.log.storage.manager.class.name STRING - -
remote.log.storage.manager.class.path STRING - -
remote.log.storage.manager.impl.prefix STRING rsm.config. -
remote.log.storage.system.enable BOOLEAN false -
replica.fetch.backoff.ms INT 1000 0..
replica.fetch.max.bytes INT 1048576 0..
replica.fetch.min.bytes INT 1 -
replica.fetch.response.max.bytes INT 10485760 0..
replica.fetch.wait.max.ms INT 500 -
replica.high.watermark.checkpoint.interval.ms LONG 5000 -
replica.lag.time.max.ms LONG 30000 -
replica.selector.class STRING - -
replica.socket.receive.buffer.bytes INT 65536 -
replica.socket.timeout.ms INT 30000 -
replication.quota.window.num INT 11 1..
replication.quota.window.size.seconds INT 1 1..
request.timeout.ms INT 30000 -
sasl.client.callback.handler.class CLASS - -
sasl.enabled.mechanisms LIST GSSAPI - dynamic
sasl.jaas.config PASSWORD - - dynamic
sasl.kerberos.kinit.cmd STRING /usr/bin/kinit - dynamic
sasl.kerberos.min.time.before.relogin LONG 60000 - dynamic
sasl.kerberos.principal.to.local.rules LIST DEFAULT - dynamic
sasl.kerberos.service.name STRING - - dynamic
sasl.kerberos.ticket.renew.jitter DOUBLE 0.05 - dynamic
sasl.kerberos.ticket.renew.window.factor DOUBLE 0.8 - dynamic
sasl.login.callback.handler.class CLASS - -
sasl.login.class CLASS - -
sasl.login.connect.timeout.ms INT - -
sasl.login.read.timeout.ms INT - -
sasl.login.refresh.buffer.seconds SHORT 300 - dynamic
sasl.login.refresh.min.period.seconds SHORT 60 - dynamic
sasl.login.refresh.window.factor DOUBLE 0.8 - dynamic
sasl.login.refresh.window.jitter DOUBLE 0.05 - dynamic
sasl.login.retry.backoff.max.ms LONG 10000 -
sasl.login.retry.backoff.ms LONG 100 -
sasl.mechanism.controller.protocol STRING GSSAPI -
sasl.mechanism.inter.broker.protocol STRING GSSAPI - dynamic
sasl.oauthbearer.assertion.algorithm STRING RS256 ES256|RS256
sasl.oauthbearer.assertion.claim.aud STRING - -
sasl.oauthbearer.assertion.claim.exp.seconds INT 300 0..86400
sasl.oauthbearer.assertion.claim.iss STRING - -
sasl.oauthbearer.assertion.claim.jti.include BOOLEAN false -
sasl.oauthbearer.assertion.claim.nbf.seconds INT 60 0..3600
sasl.oauthbearer.assertion.claim.sub STRING - -
sasl.oauthbearer.assertion.file STRING - -
sasl.oauthbearer.assertion.private.key.file STRING - -
sasl.oauthbearer.assertion.private.key.passphrase PASSWORD - -
sasl.oauthbearer.assertion.template.file STRING - -
sasl.oauthbearer.client.credentials.client.id STRING - -
sasl.oauthbearer.client.credentials.client.secret PASSWORD - -
sasl.oauthbearer.clock.skew.seconds INT 30 -
sasl.oauthbearer.expected.audience LIST "" -
sasl.oauthbearer.expected.issuer STRING - -
sasl.oauthbearer.jwks.endpoint.refresh.ms LONG 3600000 -
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms LONG 10000 -
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms LONG 100 -
sasl.oauthbearer.jwks.endpoint.url STRING - -
sasl.oauthbearer.jwt.retriever.class CLASS org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever -
sasl.oauthbearer.jwt.validator.class CLASS org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator -
sasl.oauthbearer.scope STRING - -
sasl.oauthbearer.scope.claim.name STRING scope -
sasl.oauthbearer.sub.claim.name STRING sub -
sasl.oauthbearer.token.endpoint.url STRING - -
sasl.server.callback.handler.class CLASS - -
sasl.server.max.receive.size INT 524288 -
security.inter.broker.protocol STRING PLAINTEXT PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL
security.providers STRING - -
share.coordinator.append.linger.ms INT -1 -1..
share.coordinator.cached.buffer.max.bytes INT 1048588 524288.. dynamic
share.coordinator.load.buffer.size INT 5242880 1..
share.coordinator.snapshot.update.records.per.snapshot INT 500 0..500
share.coordinator.state.topic.compression.codec INT 0 -
share.coordinator.state.topic.min.isr SHORT 1 1..
share.coordinator.state.topic.num.partitions INT 50 1..
share.coordinator.state.topic.replication.factor SHORT 1 1..
share.coordinator.state.topic.segment.bytes INT 104857600 1..
share.coordinator.threads INT 1 1..
share.coordinator.write.timeout.ms INT 5000 1..
share.fetch.purgatory.purge.interval.requests INT 1000 -
socket.connection.setup.timeout.max.ms LONG 30000 -
socket.connection.setup.timeout.ms LONG 10000 -
socket.listen.backlog.size INT 50 1..
socket.receive.buffer.bytes INT 102400 -
socket.request.max.bytes INT 104857600 1..
socket.send.buffer.bytes INT 102400 -
ssl.allow.dn.changes BOOLEAN false -
ssl.allow.san.changes BOOLEAN false -
ssl.cipher.suites LIST "" - dynamic
ssl.client.auth STRING none required|requested|none dynamic
ssl.enabled.protocols LIST TLSv1.2,TLSv1.3 - dynamic
ssl.endpoint.identification.algorithm STRING https - dynamic
ssl.engine.factory.class CLASS - - dynamic
ssl.key.password PASSWORD - - dynamic
ssl.keymanager.algorithm STRING SunX509 - dynamic
ssl.keystore.certificate.chain PASSWORD - - dynamic
ssl.keystore.key PASSWORD - - dynamic
ssl.keystore.location STRING - - dynamic
ssl.keystore.password PASSWORD - - dynamic
ssl.keystore.type STRING JKS - dynamic
ssl.principal.mapping.rules STRING DEFAULT -
ssl.protocol STRING TLSv1.3 - dynamic
ssl.provider STRING - - dynamic
ssl.secure.random.implementation STRING - - dynamic
ssl.trustmanager.algorithm STRING PKIX - dynamic
ssl.truststore.certificates PASSWORD - - dynamic
ssl.truststore.location STRING - - dynamic
ssl.truststore.password PASSWORD - - dynamic
ssl.truststore.type STRING JKS - dynamic
super.users STRING - -
telemetry.max.bytes INT 1048576 1..
transaction.abort.timed.out.transaction.cleanup.interval.ms INT 10000 1..
transaction.max.timeout.ms INT 900000 1..
transaction.partition.verification.enable BOOLEAN true - dynamic
transaction.remove.expired.transaction.cleanup.interval.ms INT 3600000 1..
transaction.state.log.load.buffer.size INT 5242880 1..
transaction.state.log.min.isr INT 1 1..
transaction.state.log.num.partitions INT 50 1..
transaction.state.log.replication.factor SHORT 1 1..
transaction.state.log.segment.bytes INT 104857600 1..
transaction.two.phase.commit.enable BOOLEAN false -
transactional.id.expiration.ms INT 604800000 1..
unclean.leader.election.enable BOOLEAN false - dynamic
"""
