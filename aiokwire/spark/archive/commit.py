"""How a round of an archive becomes part of it, all at once.

```
1  tasks write files under temporary names, which readers pass over
2  .pending.json is written: the round's manifest, and which file gets which name
3  what a compaction has put together is removed; the files get their names
4  .pending.json becomes the manifest: the round is committed
```

Killed before 2, nothing has happened, and the next run sweeps the files; killed after it, the next run goes on from
there. At no moment is a record in two files that a reader of the directory sees.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence

from aiokwire.clock import wall_ms
from aiokwire.spark.archive import manifest as manifests
from aiokwire.spark.archive.layout import is_temporary
from aiokwire.spark.archive.manifest import PENDING, Archive, ArchiveDamaged, Manifest
from aiokwire.spark.archive.tasks import Written
from aiokwire.spark.jobs.filesystem import Store

logger = logging.getLogger("aiokwire.spark")


def commit(store: Store, manifest: Manifest, written: Sequence[Written]) -> None:
    """Make these files part of the archive.

    Raises: OSError: the file system does not do it; the next run goes on from where it is.
    """
    files = tuple(sorted(each.file for each in written))
    moves = {each.temporary: each.file.path for each in written}
    pending = dataclasses.replace(manifest, files=manifest.files + files, moves=moves, written=wall_ms())
    store.replace(PENDING, manifests.encode(pending))
    _finish(store, pending)


def _finish(store: Store, pending: Manifest) -> None:
    for path in pending.removes:
        store.delete(path)
    for temporary, path in pending.moves.items():
        if store.exists(temporary):
            store.move(temporary, path)
        elif not store.exists(path):
            raise ArchiveDamaged(f"{temporary} is not there, which {PENDING} says is to become {path}")
    for folder in sorted({path.rpartition("/")[0] for path in pending.moves.values()}):
        store.settle(folder)
    store.move(PENDING, manifests.name_of(pending.number))
    store.settle(manifests.FOLDER)


def recover(store: Store) -> Archive:
    """The archive as it is, after what a killed run has left is finished or swept.

    Raises: ArchiveDamaged: a manifest or a file that is to be committed is missing.
    """
    data = store.read(PENDING)
    if data is not None:
        pending = manifests.decode(data, PENDING)
        logger.info("round %d was on its way when an earlier run ended: it is committed now", pending.number)
        _finish(store, pending)
    found = manifests.load(store)
    sweep(store, found)
    return found


def sweep(store: Store, archive: Archive) -> int:
    """Remove what was never committed, and manifests that a compaction has taken the place of; how many."""
    names = store.files(manifests.FOLDER)
    stale = [name for name in names if manifests.is_manifest(name) and name < manifests.name_of(archive.begins)]
    stale += [name for name in names if name.endswith(".new")]
    for folder in store.folders():
        if folder.startswith("topic="):
            stale += [path for path in store.files(folder, recursive=True) if is_temporary(path)]
    for path in stale:
        store.delete(path)
    return len(stale)
