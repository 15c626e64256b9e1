import { afterEach, describe, expect, it } from 'vitest'
import { defaultWorld } from '../../sim/index.ts'
import { expectDeletable, expectNothingLeft } from '../functions/adversity.ts'
import { type Lab, type LabOptions, openLab, settled } from '../lab/lab.ts'

let lab: Lab
/** What was asked of Proxmox when it was asked to clone. */
let clones: { node: string; template: number; form: URLSearchParams }[]
const open = async (options: LabOptions = {}) => {
  clones = []
  lab = await openLab({
    ...options,
    interpose: ({ surroundings, exchange }) => ({
      surroundings,
      exchange(endpoint, request) {
        const [, node, template] = /\/nodes\/(\w+)\/qemu\/(\d+)\/clone$/.exec(request.path) ?? []
        const form = new URLSearchParams(Buffer.from(request.body ?? []).toString())
        if (node !== undefined) clones.push({ node, template: Number(template), form })
        return exchange(endpoint, request)
      },
    }),
  })
}
afterEach(() => lab?.close())

const uidsOf = (count: number) => Array.from({ length: count }, (_, index) => `proxy-${index}`)
const placed = (uids: string[]) => uids.map((uid) => lab.row(uid)?.place?.node ?? 'nowhere')
const counts = (nodes: string[]) =>
  Object.fromEntries(
    Map.groupBy(nodes, (node) => node)
      .entries()
      .map(([node, all]) => [node, all.length]),
  )

async function readyAtOnce(uids: string[]): Promise<void> {
  for (const uid of uids) lab.request(uid)
  await lab.run(() => uids.every((uid) => lab.row(uid)?.phase === 'Ready'))
}

describe('templates whose disks lie on one node each', () => {
  // Report: ionos-cloud/cluster-api-provider-proxmox#107
  // Report: ionos-cloud/cluster-api-provider-proxmox#673
  // Report: bpg/terraform-provider-proxmox#1387
  it('are cloned where they are: the node is chosen first, then its own template, and no target is named', async () => {
    await open()
    const uids = uidsOf(9)
    await readyAtOnce(uids)
    expect(new Set(placed(uids)).size).toBe(3)
    const templates = { pve1: 9000, pve2: 9001, pve3: 9002 }
    for (const { node, template, form } of clones) {
      expect(templates).toHaveProperty(node, template)
      expect(form.has('target')).toBe(false)
    }
    expect(clones).toHaveLength(9)
  })

  // Report: jedrw/kproximate#9
  it('of which there is one alone send every proxy to its node', async () => {
    const everywhere = { pve1: 9000, pve2: 9001, pve3: 9002 }
    await open({ cluster: { images: { 'debian-12': { pve2: 9001 }, 'debian-13': everywhere } } })
    const uids = uidsOf(4)
    await readyAtOnce(uids)
    expect(counts(placed(uids))).toEqual({ pve2: 4 })
  })
})

describe('the nodes of a zone', () => {
  it('do without one that hangs, though the cluster lists it as online', async () => {
    await open()
    lab.sim.setNode('pve2', 'hung')
    const uids = uidsOf(4)
    for (const uid of uids) lab.request(uid)
    await lab.run(() => uids.every((uid) => lab.row(uid)?.phase === 'Ready'), 600_000)
    expect(placed(uids)).not.toContain('pve2')
  })

  // Report: Stellatarum/docker-machine-driver-pve#52
  it('share proxies evenly by their number, those in the making included', async () => {
    await open({ config: { placement: 'fewest' } })
    const uids = uidsOf(9)
    // Each comes when the one before has its place, and long before it is ready.
    for (const uid of uids) {
      lab.request(uid)
      await lab.run(() => lab.row(uid)?.place !== undefined)
    }
    expect(uids.map((uid) => lab.row(uid)?.phase)).not.toContain('Ready')
    expect(counts(placed(uids))).toEqual({ pve1: 3, pve2: 3, pve3: 3 })
  })
})

describe('proxies of one group', () => {
  const grouped = (group: string) => ({ spec: { labels: { group } } })
  const spread = { config: { spreadBy: 'group' } }

  // Report: ionos-cloud/cluster-api-provider-proxmox#577
  it('are put on different nodes, though they all come at once', async () => {
    await open(spread)
    const uids = uidsOf(9)
    for (const [index, uid] of uids.entries()) lab.request(uid, grouped(`set-${index % 3}`))
    await lab.run(() => uids.every((uid) => lab.row(uid)?.phase === 'Ready'))
    for (let set = 0; set < 3; set++) {
      const nodes = placed(uids.filter((_, index) => index % 3 === set))
      expect(counts(nodes)).toEqual({ pve1: 1, pve2: 1, pve3: 1 })
    }
    for (const uid of uids) lab.remove(uid)
    await lab.run()
    expectNothingLeft(lab)
  })

  it('fill up evenly where they are more than nodes, and the place of one that goes is taken next', async () => {
    await open(spread)
    const uids = uidsOf(6)
    for (const uid of uids) lab.request(uid, grouped('shop'))
    await lab.run(() => uids.every((uid) => lab.row(uid)?.phase === 'Ready'))
    expect(counts(placed(uids))).toEqual({ pve1: 2, pve2: 2, pve3: 2 })
    const node = placed(['proxy-0'])
    lab.remove('proxy-0')
    await lab.run(() => lab.row('proxy-0')?.phase === 'Deleted')
    lab.request('another', grouped('shop'))
    await settled(lab, 'another')
    expect(placed(['another'])).toEqual(node)
  })

  it('share a node when the storage of the others is away, and leave no place taken there', async () => {
    await open(spread)
    const offline = "storage 'vmdata' is not online"
    lab.sim.setStorage('vmdata', { offline, on: ['pve1', 'pve2'] })
    const uids = uidsOf(2)
    for (const uid of uids) lab.request(uid, grouped('shop'))
    await lab.run(() => uids.every((uid) => lab.row(uid)?.phase === 'Ready'))
    expect(counts(placed(uids))).toEqual({ pve3: 2 })
    const places = lab.claims.all().filter(({ partition }) => partition.startsWith('spread#'))
    expect(new Set(places.map(({ partition }) => partition))).toEqual(new Set(['spread#lab#pve3#shop']))
  })
})

describe('zones of different nodes', () => {
  it('keep apart what is not to share a node', async () => {
    const zones = {
      left: { cluster: 'lab', nodes: ['pve1'] },
      right: { cluster: 'lab', nodes: ['pve2', 'pve3'] },
    }
    await open({ config: { zones } })
    const uids = uidsOf(6)
    for (const [index, uid] of uids.entries())
      lab.request(uid, { spec: { zone: index % 2 === 0 ? 'left' : 'right' } })
    await lab.run(() => uids.every((uid) => lab.row(uid)?.phase === 'Ready'))
    const [left, right] = [0, 1].map((odd) => placed(uids.filter((_, index) => index % 2 === odd)))
    expect(counts(left ?? [])).toEqual({ pve1: 3 })
    expect(right).not.toContain('pve1')
  })
})

describe('a storage that is not active', () => {
  const away =
    "unable to activate storage 'vmdata' - directory is expected to be a mount point but is not mounted: '/var/lib/vmdata'"

  // Report: k8s-proxmox/cluster-api-provider-proxmox#190
  it.each([8, 9] as const)('on some nodes of PVE %i sends new proxies to the others', async (version) => {
    await open({ version })
    lab.sim.setStorage('vmdata', { offline: away, on: ['pve1', 'pve3'] })
    const uids = uidsOf(6)
    await readyAtOnce(uids)
    expect(counts(placed(uids))).toEqual({ pve2: 6 })
    for (const uid of uids) lab.remove(uid)
    await lab.run()
    expectNothingLeft(lab)
  })

  it('or is not there on some nodes sends new proxies to the others, and where there is none that is told', async () => {
    const world = defaultWorld()
    const [, vmdata] = world.storages
    if (vmdata) vmdata.nodes = ['pve1']
    await open({ world })
    const uids = uidsOf(4)
    await readyAtOnce(uids)
    expect(counts(placed(uids))).toEqual({ pve1: 4 })
    await lab.close()
    if (vmdata) vmdata.nodes = ['elsewhere']
    await open({ world })
    lab.request('alpha')
    expect(await settled(lab, 'alpha')).toMatchObject({ problem: { code: 'UnsupportedStorage' } })
  })

  it('anywhere is waited for', async () => {
    await open()
    lab.sim.setStorage('vmdata', { offline: away })
    lab.request('alpha')
    lab.clock.after(3600_000, () => lab.sim.setStorage('vmdata', {}))
    expect(await settled(lab, 'alpha')).toMatchObject({ phase: 'Ready' })
    await expectDeletable(lab, 'alpha')
  })
})
