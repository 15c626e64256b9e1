import { expect } from 'vitest'
import { CREATE_STEPS, type StepName } from '../../lib/record.ts'
import type { LabOptions } from '../lab/lab.ts'
import type { Stage } from './stage.ts'

/** A piece of a proxy's life: what comes before it, the event it begins with, and what must have come of it in the end. */
export type Plot = {
  name: string
  before(stage: Stage): Promise<void>
  event(stage: Stage): void
  wish: { phase: 'Ready' | 'Deleted'; generation: number }
  /** Another proxy's, in the same life. */
  rival?: Plot['wish']
  lab?: LabOptions
}

const spec = { zone: 'lab-1', image: 'debian-12' }

export const ask = (stage: Stage, uid: string, generation = 1, delayMs = 0) =>
  stage.publish('create', { type: 'ProxyRequested', uid, name: uid, generation, spec }, delayMs)

export const unask = (stage: Stage, uid: string, delayMs = 0) =>
  stage.publish('delete', { type: 'ProxyDeletionRequested', uid }, delayMs)

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

/** The wish is met, and nothing but what it takes is there: no second VM, no stray disk, seed, claim or message. */
export function expectMet({ lab }: Stage, uid: string, { phase, generation }: Plot['wish']): void {
  const row = lab.row(uid)
  expect(row).toMatchObject({ phase, wish: phase === 'Ready' ? 'present' : 'absent' })
  expect(lab.queues.deadLetters.map(({ obituary }) => obituary)).toEqual([])
  const types = lab.outcomes.filter((event) => event.uid === uid).map(({ type }) => type)
  expect(types).toContain(`Proxy${phase}`)
  const ofUid = lab.claims.all().filter(({ owner }) => owner === uid)
  const vms = lab.sim.vms().filter(({ config }) => String(config.description).includes(`"uid":"${uid}"`))
  const seeds = lab.leftOvers().volumes.filter((volid) => volid.includes(`-${uid}-g`))
  if (phase === 'Deleted') {
    expect({ claims: ofUid, vms, seeds }).toEqual({ claims: [], vms: [], seeds: [] })
    return
  }
  expect(row?.generation).toBe(generation)
  const vmid = row?.place?.vmid
  expect(vms).toEqual([expect.objectContaining({ vmid, running: true, pool: 'egress' })])
  expect(ofUid.map(({ partition, sort }) => `${partition} ${sort}`).sort()).toEqual([
    `address#lab#${row?.address} 0`,
    `vmid#lab ${vmid}`,
  ])
  expect(seeds).toEqual([`local:iso/egress-test-${uid}-g${generation}.iso`])
}

/** No volume is there that no VM has. */
export function expectNoStrays({ lab }: Stage): void {
  const configs = JSON.stringify(lab.sim.vms().map(({ config }) => config))
  expect(lab.leftOvers().volumes.filter((volid) => !configs.includes(volid))).toEqual([])
  expect(lab.queues.size()).toBe(0)
}
