import { type Asked, check } from './clone-check.ts'
import { freshConf, write } from './clone-conf.ts'
import { type CloneData, type CloneRun, presentPiece, sourceVolume, storageOf } from './clone-data.ts'
import { allocate, copied, copyFailed } from './clone-disks.ts'
import { confPath, lockOn, lockTimeout, vmLock, vmOn } from './cluster.ts'
import { type Ctx, type Endpoint, flag, may, maybeText, mustHave, reply, text, vmidOf } from './endpoint.ts'
import { die, forbid } from './errors.ts'
import { end, lock, next, type Program } from './program.ts'
import { activeStorage, findVolume, removeVolume, storageConfig, storageLock } from './storage.ts'

/** Source: qemu-server API2/Qemu.pm clone_vm. */
export const cloneEndpoint: Endpoint = {
  method: 'POST',
  path: '/nodes/{node}/qemu/{vmid}/clone',
  permission(ctx) {
    mustHave(ctx, `/vms/${vmidOf(ctx)}`, 'VM.Clone')
    const pool = maybeText(ctx, 'pool')
    if (may(ctx, `/vms/${maybeText(ctx, 'newid') ?? ''}`, 'VM.Allocate')) return
    if (pool === undefined || !ctx.cluster.state.pools[pool] || !may(ctx, `/pool/${pool}`, 'VM.Allocate'))
      forbid()
  },
  handler(ctx) {
    const asked = askedOf(ctx)
    if (asked.pool !== undefined && !ctx.cluster.state.pools[asked.pool])
      forbid(`pool '${asked.pool}' does not exist`)
    const { pieces } = check(ctx.cluster, ctx.node, asked, ctx)
    const data: CloneData = { ...asked, caller: ctx.caller, pieces, done: 0, made: [] }
    return reply(ctx.cluster.tasks.fork(ctx.node, 'qmclone', String(asked.vmid), ctx.caller, data))
  },
}

function askedOf(ctx: Ctx): Asked {
  const target = maybeText(ctx, 'target')
  const elsewhere = target !== undefined && target !== ctx.node && target !== 'localhost'
  const optional = {
    name: maybeText(ctx, 'name') || undefined,
    description: maybeText(ctx, 'description') || undefined,
    pool: maybeText(ctx, 'pool'),
    snapname: maybeText(ctx, 'snapname'),
    storage: maybeText(ctx, 'storage'),
    format: maybeText(ctx, 'format'),
    full: ctx.params.full === undefined ? undefined : flag(ctx, 'full'),
    target: elsewhere ? target : undefined,
  }
  const given = Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined))
  return { vmid: vmidOf(ctx), newid: Number(text(ctx, 'newid')), ...given }
}

export const cloneProgram: Program<CloneData> = {
  stages: {
    begin(run) {
      if (run.cluster.state.version === 9)
        run.log(`creating a clone of VM ${run.data.vmid} with ID ${run.data.newid}`)
      const source = vmOn(run.cluster, run.node, run.data.vmid)
      const mode = source?.run ? 'exclusive' : 'shared'
      const path = vmLock(run.data.vmid)
      return lock(lockOn(run.node, path), mode, 1000, 'target', lockTimeout(path))
    },
    target(run) {
      const path = vmLock(run.data.newid)
      return lock(lockOn(run.node, path), 'exclusive', 1000, 'placeholder', lockTimeout(path))
    },
    placeholder(run) {
      const { cluster, data, node } = run
      const { pieces, conf } = check(cluster, node, data)
      if (cluster.state.vms[data.newid])
        die(`close (rename) atomic file '/etc/pve/${confPath(node, data.newid)}' failed: File exists`)
      if (data.newid === data.vmid) die(`unable to create VM ${data.newid}: config file already exists`)
      data.pieces = pieces
      data.conf = freshConf(run, conf)
      write(run, { lock: 'clone', description: ' qmclone temporary file' })
      return next('drive')
    },
    drive(run) {
      const { cluster, data, node } = run
      const piece = data.pieces[data.done]
      if (!piece) return next('finish')
      run.log(`create ${piece.full ? 'full' : 'linked'} clone of drive ${piece.slot} (${piece.source})`)
      const storage = activeStorage(cluster, storageOf(data, piece), node)
      const { name, failure } = storageLock(storage, node)
      return lock(name, 'exclusive', 10_000, 'allocate', failure)
    },
    allocate(run) {
      const piece = presentPiece(run)
      allocate(run, piece)
      return next('allocated', run.cluster.durations.storageLockMs)
    },
    allocated(run) {
      const { cluster, data, node } = run
      const piece = presentPiece(run)
      run.unlock(storageLock(storageConfig(cluster, storageOf(data, piece)), node).name)
      const { cloneMs, clonePerGiBMs, linkedCloneMs } = cluster.durations
      if (!piece.full) return next('placed', linkedCloneMs)
      const gib = sourceVolume(run, piece).sizeBytes / 1024 ** 3
      return next('placed', cloneMs + Math.round(clonePerGiBMs * gib))
    },
    placed(run) {
      const { data } = run
      const piece = presentPiece(run)
      if (piece.full) copied(run, piece)
      if (data.conf) write(run, { ...data.conf, lock: 'clone' })
      data.done += 1
      return next('drive')
    },
    finish(run) {
      const { cluster, data } = run
      const vm = write(run, data.conf ?? {})
      if (data.target !== undefined) vm.node = data.target
      if (data.pool === undefined) return end
      const pool = cluster.state.pools[data.pool]
      if (!pool) die(`can't add VM ${data.newid} to pool '${data.pool}': pool '${data.pool}' does not exist`)
      pool.vmids.push(data.newid)
      return end
    },
  },
  failed(run, text) {
    const { cluster, data, node } = run
    if (!data.conf) return text
    for (const made of data.made) {
      const volume = findVolume(cluster, node, made)
      if (volume) removeVolume(cluster, volume)
    }
    if (cluster.state.vms[data.newid]?.node === node) delete cluster.state.vms[data.newid]
    return `clone failed: ${text}`
  },
  interrupted: (run, stage) =>
    isCopying(run, stage) ? copyFailed(run, 'interrupted by signal') : 'interrupted by signal',
  toolKilled: (run, stage, signal) =>
    isCopying(run, stage) ? copyFailed(run, `got signal ${signal}`) : undefined,
}

const isCopying = (run: CloneRun, stage: string): boolean => stage === 'placed' && presentPiece(run).full
