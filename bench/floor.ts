import { describe } from '../lib/mark.ts'
import { hashNumber, macOf, seedFile, tagsOf, vmName } from '../lib/names.ts'
import { makeSeed } from '../lib/nocloud/index.ts'
import { byHash } from '../lib/placement.ts'
import { createProxmox, type Provider, type Upid } from '../lib/proxmox/index.ts'
import { BOOT_MS } from './conditions.ts'
import type { Installation } from './installation.ts'

const POLL_MS = 100
const GIB = 1024 ** 3

/** How long each stage took. */
export type Stages = Record<string, number>

/** A proxy that the floor has made. */
export type Made = { uid: string; node: string; vmid: number; seed: string; totalMs: number; stages: Stages }

/** Places for clones and destroys of a node's storage, given on in the order they were asked for and without a pause. */
type Slots = (node: string) => { enter(): Promise<void>; leave(): void }

/**
 * The least that a proxy takes: a straight-line script that does the same work on the same Proxmox (the same clone, seed,
 * configuration, disk, start, question to the agent and request through the proxy; the same stop, destroy and proofs) and
 * is told the rest: which node and number are free, that nobody else touches its VM, when the guest will be up. It keeps
 * to the same places for clones, since Proxmox's storage lock is not a matter of who waits for it. It looks every 100 ms.
 *
 * It cannot crash, be told twice, or meet anything it did not expect. What our functions do beyond it is for that.
 */
export function createFloor(installation: Installation) {
  const { lab, outside } = installation
  const { clock, config, world } = lab
  const cluster = config.clusters.lab
  if (!cluster) throw new Error('the lab has a cluster of this name')
  const vms: Provider = createProxmox({
    endpoints: world.nodes.map(({ name }) => ({ url: `https://${name}:8006`, node: name })),
    token: { get: async () => [world.tokens.egress] },
    exchange: outside.exchange,
    now: () => clock.now(),
  }).with({ signal: new AbortController().signal })
  const slots = createSlots(config.limits.clonesPerStorage)

  async function ended(upid: Upid | undefined): Promise<void> {
    if (upid === undefined) return
    for (;;) {
      await clock.sleep(POLL_MS)
      const state = await vms.task(upid)
      if (state.running) continue
      if (!state.ok) throw state.error
      return
    }
  }

  async function create(uid: string): Promise<Made> {
    const stages: Stages = {}
    const startedMs = clock.now()
    let lapMs = startedMs
    const lap = (stage: string) => {
      stages[stage] = clock.now() - lapMs
      lapMs = clock.now()
    }
    const templates = Object.entries(cluster?.images['debian-12'] ?? {}).map(([node, vmid]) => ({
      node,
      vmid,
    }))
    const template = byHash(uid, templates)
    if (!template) throw new Error('no node has the template')
    const { node } = template
    const { from, to } = cluster?.vmids ?? { from: 0, to: 0 }
    const vmid = freeNumber(from + (hashNumber(uid) % (to - from + 1)), { from, to })
    const file = seedFile(config.deployment, uid, 1)
    const seed = `local:iso/${file}`
    const mac = macOf(config.deployment, uid)
    const { proxy, size } = config.defaults

    const slot = slots(node)
    await slot.enter()
    lap('waits for a place')
    const mark = { deployment: config.deployment, uid, generation: 1, vmid, specHash: '0'.repeat(64), seed }
    await ended(
      await vms.clone({
        template,
        vmid,
        name: vmName({ uid, name: uid }),
        description: describe(mark, uid),
        pool: 'egress',
        full: true,
        storage: 'vmdata',
      }),
    )
    slot.leave()
    lap('clone')

    const bytes = makeSeed({
      instanceId: `${uid}-g1`,
      hostname: vmName({ uid, name: uid }),
      mac,
      proxy: { port: proxy.port, allow: proxy.allow },
      probeFrom: config.verify.probeFrom,
      memoryMiB: size.memoryMiB,
    })
    await ended(await vms.upload({ node, storage: 'local', filename: file, bytes }))
    lap('seed')

    const vm = { node, vmid }
    const look = await vms.look(vm)
    if (look.kind !== 'vm') throw new Error(`the clone is not there: ${look.kind}`)
    const set = {
      memory: size.memoryMiB,
      cores: size.cores,
      net0: `virtio=${mac.toUpperCase()},bridge=vmbr0`,
      ide2: `${seed},media=cdrom`,
      boot: 'order=scsi0',
      tags: [...tagsOf(config.deployment)].join(';'),
      onboot: true,
    }
    await vms.configure(vm, { set, digest: look.config.digest })
    await ended(await vms.resize(vm, { disk: 'scsi0', bytes: size.diskGiB * GIB }))
    lap('configure')

    await ended(await vms.start(vm))
    lap('start')
    // A silent agent keeps one of three workers for 3 s: who knows when it is up does not ask before.
    await clock.sleep(BOOT_MS)
    const interfaces = await vms.interfaces(vm)
    const address = interfaces
      .filter((one) => one.mac === mac)
      .flatMap(({ addresses }) => addresses.filter(({ family }) => family === 'ipv4'))[0]?.address
    if (address === undefined) throw new Error('the guest has no address')
    lap('address')
    const { url, signal } = { url: config.verify.probeUrl, signal: new AbortController().signal }
    const result = await outside.surroundings.probe.http({ host: address, port: proxy.port, url, signal })
    if (result.kind !== 'answers') throw new Error(`the proxy does not answer: ${result.detail}`)
    lap('verify')
    return { uid, node, vmid, seed, totalMs: clock.now() - startedMs, stages }
  }

  async function remove({ node, vmid, seed }: Made): Promise<number> {
    const startedMs = clock.now()
    const vm = { node, vmid }
    // The one look that no right, however sure of itself, replaces: is it ours, and unprotected?
    const look = await vms.look(vm)
    if (look.kind !== 'vm') throw new Error(`the VM is not there: ${look.kind}`)
    await ended(await vms.stop(vm))
    await ended(await vms.deleteVolume({ node, storage: 'local', volume: seed }))
    const slot = slots(node)
    await slot.enter()
    await ended(await vms.destroy(vm, { unreferencedDisks: true }))
    slot.leave()
    if ((await vms.volumesOf({ node, storage: 'vmdata', vmid })).length > 0)
      throw new Error('a disk was left')
    if (!(await vms.isFree(vmid))) throw new Error('the VM is still there')
    return clock.now() - startedMs
  }

  const given = new Set<number>()
  function freeNumber(first: number, { from, to }: { from: number; to: number }): number {
    let vmid = first
    while (given.has(vmid)) vmid = vmid === to ? from : vmid + 1
    given.add(vmid)
    return vmid
  }

  return { create, remove }
}

function createSlots(limit: number): Slots {
  const nodes = new Map<string, { free: number; queue: (() => void)[] }>()
  return (node) => {
    const state = nodes.get(node) ?? { free: limit, queue: [] }
    nodes.set(node, state)
    return {
      async enter() {
        if (state.free > 0) state.free -= 1
        else await new Promise<void>((resolve) => state.queue.push(resolve))
      },
      leave() {
        const next = state.queue.shift()
        if (next) next()
        else state.free += 1
      },
    }
  }
}
