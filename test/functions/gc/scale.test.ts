import { describe, expect, it } from 'vitest'
import type { Report } from '../../../functions/gc/event.ts'
import { createGc, type GcPorts } from '../../../functions/gc/run.ts'
import { seedFile } from '../../../lib/names.ts'
import type { ListedVm, Look, Provider, Volume } from '../../../lib/proxmox/index.ts'
import type { Suspect } from '../../../lib/suspects.ts'
import { aConfig } from '../../lib/a-config.ts'
import { NOW } from '../../lib/a-row.ts'
import { aMark, aSummary, aVm } from './a-world.ts'

const NODES = ['pve1', 'pve2', 'pve3']
const nodeOf = (number: number) => NODES[number % NODES.length] ?? ''
const uids = (count: number) => Array.from({ length: count }, (_, index) => `p${index}`)
const vmids = { from: 10_000, to: 29_999 }
const config = aConfig({
  clusters: {
    lab: {
      endpoints: [{ url: 'https://pve1:8006', fingerprint: Array(32).fill('AA').join(':') }],
      token: { file: 'token' },
      storage: 'vmdata',
      isoStorage: 'local',
      bridge: 'vmbr0',
      vmids,
      images: { 'debian-12': { pve1: 9000 } },
    },
  },
  zones: { 'lab-1': { cluster: 'lab', nodes: ['pve1'] } },
})

type Big = { rows: number; orphans: number; foreign: number; isos: number }

/** An installation in plain lists, which counts what is asked of it. */
function installation({ rows, orphans, foreign, isos }: Big) {
  const calls = new Map<string, number>()
  const count = (what: string) => void calls.set(what, (calls.get(what) ?? 0) + 1)
  const seedOf = (uid: string) => `local:iso/${seedFile('test', uid, 1)}`
  // Every tenth row has its VM at hand; the others are tombstones or wait.
  const summaries = uids(rows).map((uid, index) =>
    index % 10 === 0
      ? aSummary({
          uid,
          place: {
            cluster: 'lab',
            node: nodeOf(index),
            vmid: vmids.from + index,
            template: 9000,
            storage: 'vmdata',
          },
          seed: seedOf(uid),
          seededOn: [nodeOf(index)],
        })
      : aSummary({ uid, phase: 'Deleted', place: undefined, seed: undefined, seededOn: undefined }),
  )
  const ours: ListedVm[] = summaries.flatMap(({ place }) =>
    place ? [aVm({ vmid: place.vmid, node: place.node })] : [],
  )
  const orphaned = uids(orphans).map((_, index) => aVm({ vmid: vmids.to - index, node: nodeOf(index) }))
  const others = uids(foreign).map((_, index) =>
    aVm({ vmid: 100_000 + index, node: nodeOf(index), tags: ['web'] }),
  )
  const seeds: Volume[] = Array.from({ length: isos }, (_, index) => {
    const uid = summaries[index * 10]?.uid
    const volid = uid === undefined ? `local:iso/debian-${index}.iso` : seedOf(uid)
    return { volid, content: 'iso', format: 'iso', sizeBytes: 1 }
  })
  const orphanLook = (vmid: number, node: string): Look => ({
    kind: 'vm',
    node,
    config: {
      digest: 'd',
      protection: false,
      template: false,
      onboot: true,
      agent: true,
      cores: 1,
      memoryMiB: 512,
      disks: [],
      cdroms: [],
      raw: {},
      tags: new Set(),
      description: JSON.stringify({
        egress: aMark({ vmid, uid: `gone-${vmid}`, seed: seedOf(`gone-${vmid}`) }),
      }),
    },
  })
  const storage = {
    enabled: true,
    active: true,
    shared: false,
    totalBytes: 1,
    availableBytes: 1,
    type: 'dir',
  }
  const answers: Partial<Provider> = {
    nodes: async () => NODES.map((name) => ({ name, online: true })),
    listVms: async () => [...ours, ...orphaned, ...others],
    runningTasks: async () => [],
    storages: async () => [
      { ...storage, storage: 'local', content: new Set(['iso']) },
      { ...storage, storage: 'vmdata', content: new Set(['images']) },
    ],
    isos: async ({ node }) => seeds.filter((_, index) => nodeOf(index * 10) === node),
    disks: async ({ node }) =>
      ours.flatMap((vm) =>
        vm.node === node
          ? [{ volid: `vmdata:vm-${vm.vmid}`, content: 'images', format: 'raw', sizeBytes: 1, vmid: vm.vmid }]
          : [],
      ),
    permissions: async () => new Set(['Datastore.Allocate']),
    look: async ({ vmid, node }) => orphanLook(vmid, node),
    isFree: async () => false,
    deleteVolume: async () => undefined,
  }
  const vms = counted('proxmox', answers as Provider, count)
  const suspects = new Map<string, Suspect>()
  const stored: Report[] = []
  const logged: Report[] = []
  let now = NOW
  const ports: GcPorts = {
    config,
    clusters: {
      named: () => vms,
      of: () => {
        throw new Error('gc asks for clusters by name')
      },
    },
    inventory: counted(
      'inventory',
      {
        rows: async () => summaries,
        claims: async () => ({
          claims: ours.map(({ vmid }, index) => ({
            partition: 'vmid#lab',
            sort: String(vmid),
            owner: summaries[index * 10]?.uid ?? '',
          })),
          suspects: [...suspects.values()],
        }),
        rowsOf: async () => [],
        row: async () => undefined,
      },
      count,
    ),
    claims: counted('claims', { leaveVmid: async () => true, free: async () => true }, count),
    suspects: counted(
      'suspects',
      {
        note: async (key, detail) =>
          void suspects.set(key, {
            kind: 'vm',
            ...detail,
            key,
            firstSeen: now,
            purgeAt: now / 1000 + 86_400,
          } as Suspect),
        keep: async () => {},
        clear: async () => {},
      },
      count,
    ),
    queues: counted('queues', { send: async () => {} }, count),
    reports: { save: async (report) => void stored.push(report) },
    log: (report) => void logged.push(report),
    measure: () => {},
    now: () => now,
  }
  const gc = createGc(ports)
  return {
    calls,
    stored,
    logged,
    later: (ms: number) => {
      now += ms
      calls.clear()
    },
    run: () => gc({ dryRun: false }, { signal: new AbortController().signal, mutateUntilMs: now + 50_000 }),
  }
}

function counted<T extends object>(name: string, port: T, count: (what: string) => void): T {
  return new Proxy(port, {
    get(target, key) {
      const member: unknown = Reflect.get(target, key)
      if (typeof member !== 'function') return member
      return (...words: unknown[]) => {
        count(`${name}.${String(key)}`)
        return Reflect.apply(member, target, words)
      }
    },
  })
}

const listing = {
  'proxmox.nodes': 1,
  'proxmox.listVms': 1,
  'proxmox.runningTasks': 3,
  'proxmox.storages': 3,
  'proxmox.isos': 3,
  'proxmox.disks': 3,
  'proxmox.permissions': 1,
  'inventory.claims': 1,
  'inventory.rows': 1,
  // Owners of claims and seeds, then of marks: all at once.
  'inventory.rowsOf': 2,
}

describe('gc among 10,000 VMs, 10,000 rows and 5,000 ISOs', () => {
  it('lists each node once and looks into no VM, where all is well', async () => {
    const big = installation({ rows: 10_000, orphans: 0, foreign: 9000, isos: 5000 })
    const report = await big.run()
    expect(report).toMatchObject({ actions: [], noted: [], warnings: [], skipped: [] })
    expect(report.looked).toMatchObject({ vms: 10_000, configs: 0, rows: 10_000, seeds: 1000, disks: 1000 })
    expect(Object.fromEntries(big.calls)).toEqual(listing)
  })

  it('looks into orphans alone, once each, and acts on no more of them than one run may', async () => {
    const big = installation({ rows: 9000, orphans: 100, foreign: 9000, isos: 5000 })
    const first = await big.run()
    expect(first.noted).toHaveLength(100)
    expect(Object.fromEntries(big.calls)).toEqual({
      ...listing,
      'proxmox.look': 100,
      'suspects.note': 100,
    })
    big.later(3600_000)
    const second = await big.run()
    expect(second).toMatchObject({ counts: { 'delete orphan: done': 20 }, heldBack: { 'delete orphan': 80 } })
    expect(Object.fromEntries(big.calls)).toEqual({
      ...listing,
      'proxmox.look': 100,
      // Twice for each that is acted on.
      'inventory.row': 2 * 20,
      'claims.leaveVmid': 20,
      'queues.send': 20,
    })
  })

  it('logs and stores a report that fits, however much is lost', async () => {
    const big = installation({ rows: 0, orphans: 3000, foreign: 9000, isos: 5000 })
    const report = await big.run()
    expect(report.noted).toHaveLength(3000)
    const [stored] = big.stored
    expect(stored).toMatchObject({ leftOff: { noted: 2950 }, looked: report.looked })
    expect(stored?.noted).toEqual(report.noted.slice(0, 50))
    expect(JSON.stringify(stored).length).toBeLessThan(100_000)
    expect(big.logged).toEqual(big.stored)
  })
})
