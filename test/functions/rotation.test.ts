import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type RotationPorts, rotate } from '../../cli/rotate.ts'
import { type Administration, createAdministration, type Grant } from '../../lib/proxmox/index.ts'
import { defaultWorld } from '../../sim/index.ts'
import { createMemoryParameters } from '../fakes/parameters.ts'
import { inProcess } from '../lab/in-process.ts'
import { openLab, TOKENS } from '../lab/lab.ts'

// A token is replaced while proxies come and go, by functions of which several processes are warm and remember the old one:
// no proxy fails for it, whichever step of the rotation falls on whichever call, in whatever order, and wherever it dies.

// A run that failed prints its seed: ROTATION_SEED=… repeats it.
const seed = process.env.ROTATION_SEED

const OLD = 'egress@pve!ctl'
const NEW = 'egress@pve!ctl-b'

/** What dies at a write, as a process would. */
class Killed extends Error {}

async function open(life: Life = 'quiet') {
  const world = defaultWorld()
  const parameters = createMemoryParameters({ [TOKENS[0]]: world.tokens.egress })
  let sent = 0
  let atCall: { nth: number; act: () => Promise<void> } | undefined
  const lab = await openLab({
    world,
    parameters,
    processes: 3,
    ...(life === 'slow' ? { cluster: { clone: 'full' }, durations: { cloneMs: 400_000 } } : {}),
    interpose: ({ surroundings, exchange }) => ({
      surroundings,
      exchange: async (endpoint, request) => {
        sent += 1
        if (sent === atCall?.nth) await atCall.act()
        return exchange(endpoint, request)
      },
    }),
  })
  const as = (token: string): Administration =>
    createAdministration(
      {
        endpoints: world.nodes.map(({ name }) => ({ url: `https://${name}:8006`, node: name })),
        token: { get: async () => [token] },
        exchange: inProcess(lab.sim),
        now: () => lab.clock.now(),
      },
      { signal: new AbortController().signal },
    )
  const admin = as(world.tokens.admin)
  const { lab: cluster } = lab.config.clusters
  if (!cluster) throw new Error('no cluster lab')
  const said: string[] = []
  const secrets = new Set([world.tokens.egress, world.tokens.admin].map(secretOf))
  const keep = (index: 0 | 1, value: string | undefined) => {
    if (value === undefined) return void parameters.kept.delete(TOKENS[index])
    secrets.add(secretOf(value))
    parameters.kept.set(TOKENS[index], value)
  }

  let deaths = 0
  const dying = () => {
    if (deaths > 0 && --deaths === 0) throw new Killed()
  }
  const ports: RotationPorts = {
    store: {
      read: async (index) => parameters.kept.get(TOKENS[index]),
      async write(index, value) {
        dying()
        keep(index, value)
      },
      async removeSecond() {
        dying()
        keep(1, undefined)
      },
    },
    as,
    admin,
    typing: { cluster, args: '--cluster lab' },
    out: (line) => said.push(line),
    err: (line) => said.push(line),
    sleep: (ms) => lab.clock.sleep(ms),
    now: () => lab.clock.now(),
  }

  return {
    lab,
    world,
    parameters,
    admin,
    keep,
    calls: () => sent,
    /** Just before the functions' nth call goes out. */
    at(nth: number, act: () => Promise<void>) {
      atCall = { nth, act }
    },
    rotation: () => rotate(ports),
    dieAt: (write: number) => {
      deaths = write
    },
    /** Everything that anybody can read afterwards. */
    readable: () =>
      JSON.stringify([
        said,
        lab.decisions,
        lab.calls,
        lab.outcomes,
        lab.ledger.items(),
        lab.claims.all(),
        lab.queues.deadLetters,
        lab.sim.tasks(),
      ]),
    secrets,
  }
}
type Stage = Awaited<ReturnType<typeof open>>

const secretOf = (value: string) => value.slice(value.indexOf('=') + 1)

/** All is as if nobody had touched a token. */
async function expectPeace(stage: Stage, uids: string[], life: Life = 'quiet'): Promise<void> {
  const { lab } = stage
  expect(lab.ledger.rows().map(({ uid, phase }) => `${uid} ${phase}`)).toEqual(
    uids.map((uid) => `${uid} Deleted`),
  )
  expect(lab.queues.deadLetters).toEqual([])
  const told = lab.outcomes.map(({ type, uid }) => `${uid} ${type}`).sort()
  const ready = { quiet: 1, hasty: 0, replaced: 2, slow: 1 }[life]
  expect(told).toEqual(
    uids.flatMap((uid) => [`${uid} ProxyDeleted`, ...Array(ready).fill(`${uid} ProxyReady`)]).sort(),
  )
  expect(lab.leftOvers()).toEqual({ vms: [], volumes: [] })
  expect(lab.claims.all()).toEqual([])
  expectSilence(stage)
}

/** No token, old or new, stands anywhere. */
function expectSilence(stage: Stage): void {
  const readable = stage.readable()
  for (const secret of stage.secrets) expect(readable).not.toContain(secret)
}

/** Where a finished rotation leaves things. */
async function expectRotated({ lab, parameters, admin }: Stage): Promise<void> {
  expect([...parameters.kept].map(([name, value]) => `${name} ${value.split('=')[0]}`)).toEqual([
    `${TOKENS[0]} ${NEW}`,
  ])
  expect((await lab.clock.until(admin.tokensOf('egress@pve'))).map(({ id }) => id)).toEqual([NEW])
}

/** How a proxy lives: in peace, or deleted while it is cloned, or replaced as soon as it is there, or cloned for many minutes. */
type Life = 'quiet' | 'hasty' | 'replaced' | 'slow'

/** A proxy's whole life, with something happening at its nth call. @returns the number of calls it took */
async function aLife(
  life: Life,
  nth: number,
  happening: (stage: Stage) => Promise<unknown>,
): Promise<number> {
  const stage = await open(life)
  const { lab } = stage
  try {
    let happens: Promise<unknown> = Promise.resolve()
    stage.at(nth, async () => {
      happens = happening(stage)
      // What is under way at the call ends before it goes out, unless it waits itself.
      await Promise.race([happens, lab.clock.sleep(1000)])
    })
    lab.request('alpha')
    const isReady = () => lab.row('alpha')?.phase === 'Ready'
    await lab.run(life === 'hasty' ? () => lab.row('alpha')?.task?.step === 'clone' : isReady)
    if (life === 'replaced') {
      lab.request('alpha', { generation: 2 })
      await lab.run(() => lab.row('alpha')?.generation === 2 && isReady())
    }
    if (life !== 'hasty') expect(lab.row('alpha')?.phase).toBe('Ready')
    lab.remove('alpha')
    await lab.run()
    await lab.clock.until(happens)
    await lab.run()
    await expectPeace(stage, ['alpha'], life)
    if (nth <= stage.calls()) await expectRotated(stage)
    return stage.calls()
  } finally {
    await lab.close()
  }
}

/** Tries the calls of a life, whose number may grow by what happens. */
async function atEveryCall(
  life: Life,
  step: number,
  happening: (stage: Stage) => Promise<unknown>,
): Promise<void> {
  let calls = 1
  for (let nth = 1; nth <= calls; nth += step) {
    calls = await aLife(life, nth, happening).catch((error: Error) => {
      error.message = `at call ${nth}: ${error.message}`
      throw error
    })
  }
  expect(calls).toBeGreaterThan(20)
}

/** Everything a person does by hand, before the next call of the functions goes out. */
const atOnce = (stage: Stage) => byHand(stage, ['make', 'second', 'first', 'keep old', 'remove', 'drop'])

describe('a rotation while a proxy lives', () => {
  it('hurts nobody, whenever it begins', () => atEveryCall('quiet', 3, (stage) => stage.rotation()))

  it.each([
    ['quiet', 1],
    ['hasty', 1],
    ['replaced', 4],
  ] as const)('nor when all of it falls between two calls of a %s life', (life, step) =>
    atEveryCall(life, step, atOnce),
  )

  it('nor when its clone takes longer than anybody waits for a call', () => atEveryCall('slow', 9, atOnce))

  it('nor when the old token goes before the new one is there', () =>
    atEveryCall('quiet', 5, async (stage) => {
      await byHand(stage, ['remove', 'make'])
      await stage.lab.clock.sleep(200_000)
      await byHand(stage, ['first', 'drop'])
    }))

  // Stores the second; the two of the switch; removes the second.
  it.each([1, 2, 3, 4])('nor when it dies at its write %i and goes on later', (write) =>
    atEveryCall('quiet', 7, async (stage) => {
      stage.dieAt(write)
      await expect(stage.rotation()).rejects.toThrow(Killed)
      await stage.lab.clock.sleep(90_000)
      await stage.rotation()
    }),
  )
})

type Step = 'make' | 'second' | 'first' | 'keep old' | 'remove' | 'drop'

/** A person's steps. What the new token needs was written down before the old one went, and its secret is known once it is made. */
async function byHand(stage: Stage, steps: readonly Step[]): Promise<void> {
  const { admin, keep, world } = stage
  const made = madeBy.get(stage) ?? {}
  madeBy.set(stage, made)
  made.grants ??= (await admin.grants()).filter(({ holder }) => holder === OLD)
  for (const step of steps) {
    if (step === 'make') {
      made.value = await admin.addToken(NEW, '')
      stage.secrets.add(secretOf(made.value))
      for (const grant of made.grants) await admin.grant({ ...grant, holder: NEW })
    }
    if (step === 'second') keep(1, made.value)
    if (step === 'first') keep(0, made.value)
    if (step === 'keep old') keep(1, world.tokens.egress)
    if (step === 'remove') await admin.removeToken(OLD)
    if (step === 'drop') keep(1, undefined)
  }
}
const madeBy = new WeakMap<Stage, { value?: string; grants?: Grant[] }>()

describe('ten proxies, each begun at another moment', () => {
  const gap = fc.integer({ min: 0, max: 90_000 })
  /** In any order; only, nobody stores a secret before Proxmox has made it up, and in the end the new one is stored. */
  const steps = fc
    .shuffledSubarray<Step>(['second', 'first', 'keep old', 'remove', 'drop'], { minLength: 5 })
    .chain((rest) => {
      const stored = rest.findIndex((step) => step === 'second' || step === 'first')
      return fc.nat({ max: stored }).map((at) => rest.toSpliced(at, 0, 'make'))
    })
  const plan = fc.record({
    requests: fc.array(gap, { minLength: 10, maxLength: 10 }),
    removals: fc.array(gap, { minLength: 10, maxLength: 10 }),
    steps,
    gaps: fc.array(gap, { minLength: 6, maxLength: 6 }),
  })

  it('do not fail by steps in any order at any time', async () => {
    await fc.assert(
      fc.asyncProperty(plan, async ({ requests, removals, steps, gaps }) => {
        const stage = await open()
        const { lab } = stage
        const { clock } = lab
        const uids = requests.map((_, index) => `p${index}`)
        const lives = uids.map(async (uid, index) => {
          await clock.sleep(requests[index] ?? 0)
          lab.request(uid)
          await clock.sleep(removals[index] ?? 0)
          // Every other one is deleted wherever it stands.
          while (index % 2 === 0 && lab.row(uid)?.phase !== 'Ready') await clock.sleep(1000)
          lab.remove(uid)
        })
        const rotation = async () => {
          for (const [index, step] of steps.entries()) {
            await clock.sleep(gaps[index] ?? 0)
            await byHand(stage, [step])
          }
        }
        try {
          let isOver = false
          const all = Promise.all([...lives, rotation()]).finally(() => {
            isOver = true
          })
          while (!isOver) {
            await lab.run(() => isOver, 3600_000)
            await clock.advance(1000)
          }
          await all
          await lab.run()
          const phases = lab.ledger.rows().map(({ uid, phase, problem }) => ({ uid, phase, problem }))
          expect(phases.filter(({ phase }) => phase !== 'Deleted')).toEqual([])
          expect(lab.outcomes.filter(({ type }) => type === 'ProxyFailed')).toEqual([])
          expect(lab.queues.deadLetters).toEqual([])
          expectSilence(stage)
        } finally {
          await lab.close()
        }
      }),
      { numRuns: 6, ...(seed === undefined ? {} : { seed: Number(seed) }) },
    )
  })
})
