import type { WorldStorage } from '../types.ts'
import { type Ctx, maybeNumber, mustHave, reply, text } from './endpoint.ts'
import { die, refuseParams } from './errors.ts'
import { end, lock, next, type Program } from './program.ts'
import {
  activeStorage,
  findVolume,
  isBaseInUse,
  parseVolumeName,
  pathOf,
  removeVolume,
  storageConfig,
  storageLock,
} from './storage.ts'
import { sleepThrough } from './wait.ts'

/** The volume of the path: with or without its storage in front. */
export function volumeParam(ctx: Ctx): { storage: WorldStorage; name: string } {
  const id = text(ctx, 'storage')
  const volume = text(ctx, 'volume')
  const [, other, name] = /^([a-zA-Z][a-zA-Z0-9\-_.]*[a-zA-Z0-9]):(.+)$/.exec(volume) ?? []
  if (other !== undefined && other !== id)
    refuseParams({ volume: `storage ID mismatch (${other} != ${id})\n` })
  return { storage: storageConfig(ctx.cluster, id), name: name ?? volume }
}

/** Source: pve-storage API2/Storage/Content.pm delete: no look at who uses the volume. */
export async function remove(ctx: Ctx) {
  const { storage, name } = volumeParam(ctx)
  const { content: kind } = parseVolumeName(storage, name)
  if (kind === 'backup') mustHave(ctx, `/storage/${storage.storage}`, 'Datastore.AllocateSpace')
  else mustHave(ctx, `/storage/${storage.storage}`, 'Datastore.Allocate')
  const data: DeleteData = { storage: storage.storage, name }
  const upid = ctx.cluster.tasks.fork(ctx.node, 'imgdel', storage.storage, ctx.caller, data)
  return reply(await sleepThrough(ctx.cluster, upid, maybeNumber(ctx, 'delay'), ''))
}

type DeleteData = { storage: string; name: string }

export const deleteProgram: Program<DeleteData> = {
  stages: {
    begin(run) {
      const storage = activeStorage(run.cluster, run.data.storage, run.node)
      const { name, failure } = storageLock(storage, run.node)
      return lock(name, 'exclusive', 10_000, 'unlink', failure)
    },
    unlink(run) {
      const { cluster, data, node } = run
      const storage = storageConfig(cluster, data.storage)
      const path = pathOf(storage, data.name)
      const volume = findVolume(cluster, node, data)
      if (volume && storage.readOnly) die(`unlink '${path}' failed - Read-only file system`)
      if (volume && isBaseInUse(cluster, volume))
        die(`base volume '${data.name}' is still in use by linked cloned`)
      if (volume) removeVolume(cluster, volume)
      else run.log(`disk image '${path}' does not exist`)
      run.unlock(storageLock(storage, node).name)
      return next('removed', cluster.durations.deleteVolumeMs)
    },
    removed(run) {
      run.log(`Removed volume '${run.data.storage}:${run.data.name}'`)
      return end
    },
  },
}
