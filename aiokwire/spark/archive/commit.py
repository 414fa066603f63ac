"""The atomic commit of a round to an archive.

```
1  tasks write files under temporary names, which readers ignore
2  .pending.json is written: the round's manifest, and the final names of the files
3  the files that a compaction replaces are removed; the new files are renamed
4  .pending.json is renamed to the manifest: the round is committed
```

After a kill before step 2, the next run deletes the files; after a later kill, it completes the
commit. A reader of the directory never sees a record in two files.
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

logger: logging.Logger = logging.getLogger("aiokwire.spark")


def commit(store: Store, manifest: Manifest, written: Sequence[Written]) -> None:
    """Add files to the archive.

    Raises: OSError: the file system fails; the next run completes the commit.
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
            raise ArchiveDamaged(f"{temporary}, which {PENDING} renames to {path}, is missing")
    for folder in sorted({path.rpartition("/")[0] for path in pending.moves.values()}):
        store.settle(folder)
    store.move(PENDING, manifests.name_of(pending.number))
    store.settle(manifests.FOLDER)


def recover(store: Store) -> Archive:
    """Complete or remove the rest of a killed run; return the archive.

    Raises: ArchiveDamaged: a manifest, or a file of the pending round, is missing.
    """
    data = store.read(PENDING)
    if data is not None:
        pending = manifests.decode(data, PENDING)
        logger.info("completing the commit of round %d, which an earlier run left unfinished", pending.number)
        _finish(store, pending)
    found = manifests.load(store)
    sweep(store, found)
    return found


def sweep(store: Store, archive: Archive) -> int:
    """Delete uncommitted files and manifests replaced by a compaction; return their count."""
    names = store.files(manifests.FOLDER)
    stale = [name for name in names if manifests.is_manifest(name) and name < manifests.name_of(archive.begins)]
    stale += [name for name in names if name.endswith(".new")]
    for folder in store.folders():
        if folder.startswith("topic="):
            stale += [path for path in store.files(folder, recursive=True) if is_temporary(path)]
    for path in stale:
        store.delete(path)
    return len(stale)
