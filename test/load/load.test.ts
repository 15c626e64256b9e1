import { expect, it } from 'vitest'
import { BOOT_MS, durations } from '../../bench/conditions.ts'
import { openLab } from '../lab/lab.ts'
import { type Crowd, openCrowd } from './crowd.ts'

/** How many there are; `npm run load` has a thousand asked for at once, and five hundred under way when the VPN is cut. */
const { LOAD_AT_ONCE = '80', LOAD_UNDER_WAY = '30' } = process.env

const HOUR_S = 3600
const TIMEOUT_MS = 30 * 60_000

it(`makes ${LOAD_AT_ONCE} proxies that are asked for at once, each once, in fair order, and takes them all away again`, {
  timeout: TIMEOUT_MS,
}, async () => {
  const crowd = await openCrowd(Number(LOAD_AT_ONCE))
  const { lab, uids } = crowd
  const startedMs = lab.clock.now()
  for (const uid of uids) lab.request(uid)
  await crowd.run(() => lab.outcomes.length === uids.length)
  await lab.clock.advance(1000)
  expectReady(crowd)
  // Whoever is last has waited for all before it on its node's storage, two at a time.
  const lastMs = Math.max(...crowd.publishedAt.values()) - startedMs
  const longestMs = (Math.ceil(mostOnOneNode(crowd) / 2) * (durations.cloneMs + 1000) + BOOT_MS) * 1.25
  expect(lastMs).toBeLessThan(longestMs + 10_000)
  const making = crowd.peaks()

  for (const uid of uids) lab.remove(uid)
  await crowd.run(() => lab.outcomes.length === 2 * uids.length)
  await lab.clock.advance(1000)
  expectNothingLeft(crowd)
  const taking = crowd.peaks()
  report('at once', { lastReadyS: lastMs / 1000, making, taking, requests: crowd.requests.length })
  expectBounded(making)
  expectBounded(taking)
  await crowd.close()
})

it.each(['refuses', 'drops'] as const)(
  `brings ${LOAD_UNDER_WAY} lives to their end after the VPN was cut for two hours (%s), none given up, and does not storm the cluster`,
  { timeout: TIMEOUT_MS },
  async (how) => {
    const crowd = await openCrowd(Number(LOAD_UNDER_WAY))
    const { lab, uids } = crowd
    // A third is ready and goes, one after the other; the others come meanwhile. So all steps are under way when it happens.
    const leaving = uids.slice(0, uids.length / 3)
    const coming = uids.slice(leaving.length)
    for (const uid of leaving) lab.request(uid)
    await crowd.run(() => lab.outcomes.length === leaving.length)
    for (const [index, uid] of coming.entries())
      crowd.after(30 + (30 * index) / coming.length, () => lab.request(uid))
    for (const [index, uid] of leaving.entries())
      crowd.after(54 + (6 * index) / leaving.length, () => lab.remove(uid))
    let stepsUnderWay: string[] = []
    crowd.after(60, () => {
      crowd.cut(how)
      stepsUnderWay = [...new Set(lab.ledger.rows().flatMap(({ step }) => step ?? []))]
    })
    let returnedMs = Number.POSITIVE_INFINITY
    crowd.after(60 + 2 * HOUR_S, () => {
      crowd.cut(undefined)
      returnedMs = lab.clock.now()
      crowd.peaks()
    })
    await crowd.run(() => lab.clock.now() >= returnedMs)
    const under = lab.ledger.rows().filter(({ step }) => step !== undefined)
    expect(stepsUnderWay.length).toBeGreaterThan(4)
    expect(under.length).toBeGreaterThan(0.8 * uids.length)
    await crowd.run(() => lab.ledger.rows().every(({ step }) => step === undefined))
    const phases = Object.fromEntries(lab.ledger.rows().map(({ uid, phase }) => [uid, phase]))
    expect(phases).toEqual(
      Object.fromEntries(uids.map((uid) => [uid, leaving.includes(uid) ? 'Deleted' : 'Ready'])),
    )
    expect(lab.queues.deadLetters).toEqual([])
    const after = crowd.peaks()
    report(`VPN ${how}`, {
      underWay: under.length,
      endedAfterS: (lab.clock.now() - returnedMs) / 1000,
      after,
    })
    expectBounded(after)
    await crowd.close()
  },
)

it('tells nobody of a storage lock that cannot be had in time, and makes every proxy all the same', {
  timeout: TIMEOUT_MS,
}, async () => {
  // Six clones at once, each of which holds the lock for 4 s, where Proxmox waits 10 s for it.
  const lab = await openLab({
    nodes: 1,
    durations: { ...durations, storageLockMs: 4000 },
    config: { limits: { clonesPerStorage: 6 } },
    cluster: { clone: 'full' },
  })
  for (let index = 0; index < 12; index++) lab.request(`proxy-${index}`)
  await lab.run(() => lab.outcomes.length === 12)
  expect(lab.decisions.filter(({ code }) => code === 'Locked').length).toBeGreaterThan(0)
  expect(lab.outcomes.map(({ type }) => type)).toEqual(Array(12).fill('ProxyReady'))
  expect(lab.queues.deadLetters).toEqual([])
  await lab.close()
})

function expectReady({ lab, uids }: Crowd): void {
  expect(lab.outcomes.map(({ type }) => type)).toEqual(uids.map(() => 'ProxyReady'))
  expect(new Set(lab.outcomes.map(({ uid }) => uid)).size).toBe(uids.length)
  expect(lab.queues.deadLetters).toEqual([])
  expect(lab.leftOvers().vms).toHaveLength(uids.length)
  expect(lab.ledger.rows().every(({ phase }) => phase === 'Ready')).toBe(true)
}

function expectNothingLeft({ lab, uids }: Crowd): void {
  expect(lab.ledger.rows().map(({ phase }) => phase)).toEqual(uids.map(() => 'Deleted'))
  expect(lab.queues.deadLetters).toEqual([])
  expect(lab.leftOvers()).toEqual({ vms: [], volumes: [] })
  expect(lab.claims.all()).toEqual([])
}

/**
 * What one node gets to bear, however many there are: two functions, each a process here, with six calls in flight that
 * the node carries out and six that it only answers.
 */
function expectBounded({ aSecond, atOnce }: { aSecond: number; atOnce: number }): void {
  expect(atOnce).toBeLessThanOrEqual(24)
  expect(aSecond).toBeLessThanOrEqual(24 * 40)
}

function mostOnOneNode({ lab }: Crowd): number {
  const nodes = lab.ledger.rows().map(({ place }) => place?.node)
  return Math.max(...nodes.map((node) => nodes.filter((other) => other === node).length))
}

function report(what: string, figures: Record<string, unknown>): void {
  if (process.env.LOAD_REPORT) console.log(what, JSON.stringify(figures))
}
