import { expect } from 'vitest'
import { CREATE_STEPS, type StepName, sideOf } from '../../lib/record.ts'
import { byHand } from '../lab/by-hand.ts'
import { withGc } from '../lab/gc-lab.ts'
import type { LabOptions } from '../lab/lab.ts'
import type { Stage } from './stage.ts'

/** A piece of a proxy's life: what comes before it, the event it begins with, and what must have come of it in the end. */
export type Plot = {
  name: string
  before(stage: Stage): Promise<void>
  event(stage: Stage): void
  /** What is done on the way, once it has come so far. */
  meanwhile?(stage: Stage): Promise<void>
  wish: { phase: 'Ready' | 'Deleted'; generation: number }
  /** Another proxy's, in the same life. */
  rival?: Plot['wish']
  lab?: LabOptions
  /** Only each so manieth death is tried, unless `CRASH_ALL=1`. */
  thinned?: number
}

/** Lives a plot until nothing moves any more; what is done counts from its event on. */
export async function play(plot: Plot, stage: Stage): Promise<void> {
  await plot.before(stage)
  stage.count(true)
  plot.event(stage)
  await plot.meanwhile?.(stage)
  await stage.run()
}

const spec = { zone: 'lab-1', image: 'debian-12' }

export const ask = (stage: Stage, uid: string, generation = 1, delayMs = 0, zone = spec.zone) =>
  stage.publish(
    'create',
    { type: 'ProxyRequested', uid, name: uid, generation, spec: { ...spec, zone } },
    delayMs,
  )

export const unask = (stage: Stage, uid: string, delayMs = 0) =>
  stage.publish('delete', { type: 'ProxyDeletionRequested', uid }, delayMs)

/** As one who redrives, or gc, asks for the row to be run again, by the turn at which it stands. */
export function resume(stage: Stage, uid: string): void {
  const row = stage.lab.row(uid)
  if (!row) return
  const message = { type: 'Resume', uid, turn: row.turn }
  stage.publish(row.step === undefined ? 'create' : sideOf(row.step, row.failedStep), message)
}

const phaseOf = ({ lab }: Stage) => lab.row('alpha')?.phase
const untilStep = (stage: Stage, step: StepName) => stage.run(() => stage.lab.row('alpha')?.step === step)

export const plots: Plot[] = [
  {
    name: 'create',
    before: async () => {},
    event: (stage) => ask(stage, 'alpha'),
    wish: { phase: 'Ready', generation: 1 },
  },
  {
    name: 'delete',
    async before(stage) {
      ask(stage, 'alpha')
      await stage.run(() => phaseOf(stage) === 'Ready')
    },
    event: (stage) => unask(stage, 'alpha'),
    wish: { phase: 'Deleted', generation: 1 },
  },
  {
    name: 'replace',
    async before(stage) {
      ask(stage, 'alpha')
      await stage.run(() => phaseOf(stage) === 'Ready')
    },
    event: (stage) => ask(stage, 'alpha', 2),
    wish: { phase: 'Ready', generation: 2 },
  },
  {
    // Two want the one number there is: who has it must not lose it before the other may have it.
    name: 'succession',
    async before(stage) {
      ask(stage, 'alpha')
      await stage.run(() => phaseOf(stage) === 'Ready')
      ask(stage, 'beta')
      await stage.run(() => stage.lab.row('beta')?.problem?.code === 'RangeExhausted')
    },
    event: (stage) => unask(stage, 'alpha'),
    wish: { phase: 'Deleted', generation: 1 },
    rival: { phase: 'Ready', generation: 1 },
    lab: { cluster: { vmids: { from: 5000, to: 5000 } } },
  },
  {
    // Refused once, for good; and whoever redrives it does so before its failure is reported, and again afterwards.
    name: 'refused',
    async before({ lab }) {
      const answer = { status: 403, reason: 'Permission check failed (/vms/9000, VM.Clone)' }
      lab.sim.faults.add({
        match: { method: 'POST', path: '/clone$' },
        times: 1,
        effect: { kind: 'answer', answer },
      })
    },
    event: (stage) => ask(stage, 'alpha'),
    async meanwhile(stage) {
      const row = () => stage.lab.row('alpha')
      const atRest = () => ['Failed', 'Ready'].includes(row()?.phase ?? '')
      await stage.run(() => row()?.step === 'report' || atRest())
      resume(stage, 'alpha')
      await stage.run(atRest)
      if (row()?.phase === 'Failed') resume(stage, 'alpha')
    },
    wish: { phase: 'Ready', generation: 1 },
  },
  {
    // Somebody has copied its VM, description and all, and puts the copy at the very number it has just chosen.
    name: 'copied',
    async before(stage) {
      const { lab, watch } = stage
      const hand = byHand(lab)
      const copy = async (vmid: number, ...from: [node: string, source: number]) => {
        watch.strangers.add(vmid)
        await hand.clone(...from, vmid, { full: '1', name: 'theirs', pool: 'egress' })
      }
      ask(stage, 'alpha')
      await stage.run(() => phaseOf(stage) === 'Ready')
      const { node = '', vmid = 0 } = lab.row('alpha')?.place ?? {}
      await copy(5900, node, vmid)
      ask(stage, 'alpha', 2)
      await untilStep(stage, 'reserve')
      await copy(vmid, 'pve1', 9000)
      await untilStep(stage, 'clone')
      await copy(lab.row('alpha')?.place?.vmid ?? 0, node, 5900)
    },
    event: () => {},
    wish: { phase: 'Ready', generation: 2 },
    lab: { cluster: { vmids: { from: 5000, to: 5003 } } },
  },
  {
    // What was begun for it ends later than it could be deleted.
    name: 'delete-at-upload',
    async before(stage) {
      ask(stage, 'alpha')
      await stage.run(() => stage.lab.row('alpha')?.task?.step === 'seed')
    },
    event: (stage) => unask(stage, 'alpha'),
    wish: { phase: 'Deleted', generation: 1 },
    lab: { durations: { uploadMs: 20_000 } },
    thinned: 3,
  },
  orphaned(0),
  ...CREATE_STEPS.map(
    (step): Plot => ({
      name: `delete-at-${step}`,
      async before(stage) {
        ask(stage, 'alpha')
        await untilStep(stage, step)
      },
      event: (stage) => unask(stage, 'alpha'),
      wish: { phase: 'Deleted', generation: 1 },
    }),
  ),
]

/**
 * Its row was lost, gc has its VM deleted, and it is asked for again: so long before that message comes, or after if that
 * is negative. Later the message comes once more.
 */
export function orphaned(aheadMs: number): Plot {
  return {
    name: `orphaned-${aheadMs}`,
    async before(stage) {
      const { lab } = stage
      ask(stage, 'alpha')
      await stage.run(() => phaseOf(stage) === 'Ready')
      lab.ledger.drop('alpha')
      const { gc, beginGc, grace, on } = withGc(lab)
      await gc()
      await grace()
      const send: typeof lab.queues.send = async (side, message) => {
        for (const ms of [Math.max(0, aheadMs), LATER_MS]) stage.publish(side, message, ms)
      }
      await on(beginGc({ interpose: (ports) => ({ ...ports, queues: { send } }) }))
    },
    event: (stage) => ask(stage, 'alpha', 1, Math.max(0, -aheadMs)),
    wish: { phase: 'Ready', generation: 1 },
    thinned: 4,
  }
}
const LATER_MS = 1200_000

/** The wish is met, and nothing but what it takes is there: no second VM, no stray disk, seed, claim or message. */
export function expectMet({ lab, watch }: Stage, uid: string, { phase, generation }: Plot['wish']): void {
  const row = lab.row(uid)
  expect(row).toMatchObject({ phase, wish: phase === 'Ready' ? 'present' : 'absent' })
  // Letters tell of what the world was told as well, each at least once.
  const failures = lab.outcomes.filter(({ type }) => type === 'ProxyFailed')
  const told = lab.queues.deadLetters.map(({ obituary }) => `${obituary.uid}:${obituary.turn}`)
  expect(new Set(told)).toEqual(new Set(failures.map((event) => `${event.uid}:${turnOf(event)}`)))
  const types = lab.outcomes.filter((event) => event.uid === uid).map(({ type }) => type)
  expect(types).toContain(`Proxy${phase}`)
  const ofUid = lab.claims.all().filter(({ owner }) => owner === uid)
  const vms = [...lab.sims.values()]
    .flatMap((sim) => sim.vms())
    .filter(
      ({ config, vmid }) =>
        !watch.strangers.has(vmid) && String(config.description).includes(`"uid":"${uid}"`),
    )
  const seeds = lab.leftOvers().volumes.filter((volid) => volid.includes(`-${uid}-g`))
  if (phase === 'Deleted') {
    expect({ claims: ofUid, vms, seeds }).toEqual({ claims: [], vms: [], seeds: [] })
    return
  }
  expect(row?.generation).toBe(generation)
  const vmid = row?.place?.vmid
  expect(vms).toEqual([expect.objectContaining({ vmid, running: true, pool: 'egress' })])
  // Who stood still may take a place in the queue of clones when others have gone on; gc gives it back.
  const lasting = ofUid.filter(({ partition }) => !partition.startsWith('clone#'))
  const cluster = row?.place?.cluster
  expect(lasting.map(({ partition, sort }) => `${partition} ${sort}`).sort()).toEqual([
    `address#${cluster}#${row?.address} 0`,
    `vmid#${cluster} ${vmid}`,
  ])
  expect(seeds).toEqual([`local:iso/egress-test-${uid}-g${generation}.iso`])
}

/** `uid:generation:turn` */
const turnOf = ({ eventId }: { eventId: string }) => Number(eventId.split(':').at(-1))

/** No volume is there that no VM has. */
export function expectNoStrays({ lab }: Stage): void {
  for (const sim of lab.sims.values()) {
    const configs = JSON.stringify(sim.vms().map(({ config }) => config))
    const volumes = sim.volumes().filter(({ volid }) => !/\/base-[^/]*$/.test(volid))
    expect(volumes.map(({ volid }) => volid).filter((volid) => !configs.includes(volid))).toEqual([])
  }
  expect(lab.queues.size()).toBe(0)
}
