import { afterEach, describe, expect, it } from 'vitest'
import { deadLetterCodes, expectNothingLeft } from '../functions/adversity.ts'
import { type Lab, type LabOptions, openLab, settled } from '../lab/lab.ts'

let lab: Lab
const open = async (options: LabOptions = {}) => {
  lab = await openLab(options)
}
afterEach(() => lab?.close())

const HOUR_MS = 3600_000
const standing = () => lab.sim.vms().filter(({ template }) => !template).length
const phases = (uids: string[]) => uids.map((uid) => lab.row(uid)?.phase)
const isReady = (uid: string) => lab.row(uid)?.phase === 'Ready'
const uidsOf = (count: number) => Array.from({ length: count }, (_, index) => `proxy-${index}`)

/** Runs as the lab does, and looks at the cluster at every step of the clock. */
async function runWatching(look: () => void, done: () => boolean): Promise<void> {
  await lab.run(() => {
    look()
    return done()
  })
}

/** The queue takes its time with what `release` sends, so that whoever waits may be quicker. */
const slowAfterRelease: LabOptions['interpose'] = ({ surroundings, exchange }) => {
  const { queues } = surroundings
  const send: typeof queues.send = (side, message, { delaySeconds }) => {
    const uid = 'uid' in message ? String(message.uid) : ''
    const isSlow = lab.row(uid)?.step === 'release' && side === 'create'
    return queues.send(side, message, { delaySeconds: isSlow ? 120 : delaySeconds })
  }
  return { exchange, surroundings: { ...surroundings, queues: { ...queues, send } } }
}

describe('a zone that is full', () => {
  const limited = (proxiesPerZone: number): LabOptions => ({ config: { limits: { proxiesPerZone } } })

  // Report: scrapoxy/scrapoxy#119
  // Report: scrapoxy/scrapoxy#158
  // Report: github-aws-runners/terraform-aws-github-runner#933
  it('never has more VMs than it may, although the list of VMs shows none of them', async () => {
    await open(limited(2))
    lab.sim.faults.add({
      match: { method: 'GET', path: '^/cluster/resources' },
      effect: { kind: 'answer', answer: { status: 200, data: [] } },
    })
    const uids = uidsOf(4)
    for (const uid of uids) lab.request(uid)
    let most = 0
    const count = () => {
      most = Math.max(most, standing())
    }
    await runWatching(count, () => uids.filter(isReady).length === 2)
    // Whoever is ready makes room, until all have had their turn.
    const served = new Set<string>()
    await runWatching(count, () => {
      for (const uid of uids.filter((one) => isReady(one) && !served.has(one))) {
        served.add(uid)
        lab.remove(uid)
      }
      return served.size === uids.length && phases(uids).every((phase) => phase === 'Deleted')
    })
    expect(most).toBe(2)
    expectNothingLeft(lab)
  })

  // Report: github-aws-runners/terraform-aws-github-runner#3105
  it('makes a request wait for hours without counting it as a failure, and serves it when there is room', async () => {
    await open(limited(1))
    lab.request('alpha')
    await settled(lab, 'alpha')
    lab.request('beta')
    lab.clock.after(4 * HOUR_MS, () => lab.remove('alpha'))
    await lab.run(() => isReady('beta'))
    expect(lab.row('beta')).toMatchObject({ phase: 'Ready', deliveries: 0 })
    expect(lab.decisions.filter(({ uid, outcome }) => uid === 'beta' && outcome === 'back')).toEqual([])
    expect(deadLetterCodes(lab)).toEqual([])
  })

  // Report: scrapoxy/scrapoxy#94
  it('keeps the proxies it has: one that is replaced does not lose its place to one that waits', async () => {
    await open({ ...limited(2), interpose: slowAfterRelease })
    for (const uid of ['alpha', 'beta']) {
      lab.request(uid)
      await settled(lab, uid)
    }
    lab.request('gamma')
    lab.request('alpha', { generation: 2 })
    await lab.run(() => isReady('alpha') && lab.row('alpha')?.generation === 2, 4 * HOUR_MS)
    expect(phases(['alpha', 'beta', 'gamma'])).toEqual(['Ready', 'Ready', 'Pending'])
    lab.remove('beta')
    await lab.run(() => isReady('gamma'))
    expect(lab.row('beta')?.phase).toBe('Deleted')
  })
})

describe('a VM that could never be tagged', () => {
  // Report: scrapoxy/scrapoxy#105
  it('bears its mark since it was cloned, and is deleted by it', async () => {
    await open()
    lab.sim.faults.add({
      match: { method: 'PUT', path: '/config$' },
      effect: { kind: 'answer', answer: { status: 500, message: 'boom' } },
    })
    lab.request('alpha')
    expect(await settled(lab, 'alpha')).toMatchObject({ phase: 'Failed', failedStep: 'configure' })
    const [vm] = lab.sim.vms().filter(({ template }) => !template)
    expect(vm?.config).not.toHaveProperty('tags')
    expect(vm?.config.description).toContain('"uid":"alpha"')
    lab.remove('alpha')
    await lab.run()
    expect(lab.row('alpha')?.phase).toBe('Deleted')
    expectNothingLeft(lab)
  })
})
