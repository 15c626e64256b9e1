import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { describe as notes } from '../../lib/mark.ts'
import { createSim, defaultWorld, type Sim } from '../../sim/index.ts'
import { openStage, type Stage } from '../cli/stage.ts'
import { aDocument } from '../lib/a-config.ts'
import { aFullSpec, aRow } from '../lib/a-row.ts'

// A stage whose rows, letters and cluster say what a terminal would obey, and quote the token where they can: the real
// command shows all of it, and does none of it.

const WIPE = '\u001b[2J\u009b2J\u001b]0;owned\u0007\u202e\u007f'
/** What of it a queue carries. */
const CARRIED = '\u009b2J\u202e\u007f'
const FORGED = 'full\nuid         nobody\r\nhint        rm -rf /'
const SECRET = 'canary-of-the-publisher-77'
let stage: Stage
let sim: Sim
let token: string

beforeAll(async () => {
  const world = defaultWorld({ version: 9, nodes: 2 })
  token = world.tokens.egress
  const seed = 'local:iso/egress-test-shop-1-g1.iso'
  const mark = { deployment: 'test', uid: 'shop-1', generation: 1, vmid: 5001, specHash: 'hash', seed }
  const description = `${WIPE}${notes(mark, 'shop')}`
  world.vms?.push({
    vmid: 5001,
    node: 'pve1',
    pool: 'egress',
    config: { name: 'egress-shop-123456', description },
  })
  sim = createSim({ world })
  const message = `VM is locked (${WIPE}) ${token}\n${Buffer.from(`x ${token}`).toString('base64')}`
  for (const path of ['/status/current', '/content', '/cluster/nextid', '/tasks'])
    sim.faults.add({
      match: { path },
      effect: { kind: 'answer', answer: { status: 500, message, reason: 'x' } },
    })
  const { endpoints } = await sim.listen()
  const { clusters, ...rest } = aDocument()
  stage = await openStage()
  const files = { config: join(stage.folder, 'config.yml'), token: join(stage.folder, 'token') }
  writeFileSync(files.token, token)
  writeFileSync(files.config, stringify({ ...rest, clusters: { lab: { ...clusters.lab, endpoints } } }))
  stage.useConfig(files.config)

  const problem = {
    code: 'NoSpace',
    reason: `${WIPE}${FORGED}`,
    hint: `${WIPE}${FORGED}`,
    firstAt: 1,
    lastAt: 2,
    times: 3,
  } as const
  const spec = { ...aFullSpec, zone: `lab-1${WIPE}`, labels: { team: `${WIPE}${FORGED}` } }
  const timeline = [{ step: 'reserve', at: 0, ms: 1, outcome: `${WIPE}${FORGED}` }] as const
  const row = aRow({
    uid: 'shop-1',
    name: 'shop',
    spec,
    seed,
    seededOn: ['pve1'],
    problem,
    timeline: [...timeline],
    step: 'start',
  })
  await stage.store(row)
  await stage.store({ ...aRow({ uid: 'broken' }), step: `polish${WIPE}` } as never)
  const letter = { failedAt: '2026-01-01T00:00:00.000Z', step: 'clone', turn: 2 }
  await stage.bury('create', `{"type":"Continue","uid":"shop-1","turn":2}${CARRIED}`, {
    ...letter,
    code: `NoSpace${CARRIED}`,
    uid: 'shop-1',
    problem: { reason: FORGED, hint: FORGED, zone: CARRIED, node: FORGED },
  })
  await stage.bury(
    'create',
    `{"type":"ProxyRequested","uid":"x","spec":{"userData":"${SECRET}${CARRIED}"}}`,
    {
      code: 'InvalidEvent',
      failedAt: 'never',
      problem: { reason: `${CARRIED}${FORGED}` },
    },
  )
  await stage.giveUp('delete', JSON.stringify({ type: 'Continue', uid: 'broken', turn: 9 }))
}, 60_000)
afterAll(async () => {
  await sim.close()
  await stage.close()
})

describe('the command line', () => {
  it.each([
    [['list']],
    [['get', 'shop-1']],
    [['get', 'shop-1', '--json']],
    [['explain', 'shop-1']],
    [['dlq', 'ls']],
    [['dlq', 'ls', '--messages']],
    [['dlq', 'ls', '--json']],
    [['dlq', 'show', 'shop-1']],
    [['request', '--name', WIPE, '--zone', FORGED, '--image', WIPE]],
  ])('shows nothing that a terminal obeys, no line that others wrote, and no secret: %j', async (args) => {
    const { out, err } = await stage.here(...args)
    const shown = out + err
    expect(shown.length).toBeGreaterThan(0)
    expect(shown).not.toMatch(/[^\P{C}\n\t]/u)
    expect(shown).not.toMatch(/^(?:uid|hint) +(?:nobody|rm -rf)/m)
    const core = (text: string, skip: number) =>
      Buffer.from('x'.repeat(skip) + text)
        .toString('base64')
        .slice(4, -4)
    const secret = token.slice(token.lastIndexOf('=') + 1)
    for (const form of [secret, SECRET, core(secret, 0), core(secret, 1), core(secret, 2)])
      expect(shown).not.toContain(form)
    // JSON stays JSON, with the same texts in it.
    if (args.includes('--json')) expect(JSON.stringify(JSON.parse(out))).toContain(CARRIED.slice(0, 3))
  })

  it('shows every other row and letter beside one that cannot be read', async () => {
    const listed = await stage.here('list')
    expect(listed.out).toMatch(/^shop-1 /m)
    expect(listed.err).toContain('the row broken cannot be read: step: got')
    const letter = await stage.here('dlq', 'show', 'broken')
    expect(letter.out).toMatch(/^state +pending: the row broken cannot be read: step: got/m)
  })
})
