import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PublishCommand, SNSClient } from '@aws-sdk/client-sns'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import type { Row } from '../../lib/record.ts'
import { credentials, REGION } from '../../local/account.ts'
import { createSim, defaultWorld, type Sim } from '../../sim/index.ts'
import { egress } from '../cli/egress.ts'
import { egressSeveral } from '../cli/egress-several.ts'
import { openStage, type Stage } from '../cli/stage.ts'
import { openLab } from '../lab/lab.ts'
import { aDocument } from '../lib/a-config.ts'
import {
  expectNoTrace,
  PASSWORD,
  quoted,
  secretOf,
  secretSpec,
  styles,
  USER_DATA_LINE,
  userData,
} from './canary.ts'

// What lives leave behind in which everything was quoted back, on a stage whose cluster quotes the token in all that it refuses:
// every command that shows any of it, for a person and as JSON, shows no secret.

const LETTERS = ['the errors of its parameters', 'the names of its parameters', 'a page that is cut short']
let stage: Stage
let sim: Sim
let folder: string
let secrets: string[]
let admin: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'egress-canary-'))
  const world = defaultWorld({ version: 9, nodes: 2 })
  const { egress: token } = world.tokens
  admin = world.tokens.admin
  secrets = [secretOf(token), secretOf(admin), PASSWORD, USER_DATA_LINE]
  sim = createSim({ world })
  const { endpoints } = await sim.listen()
  const quote = `PVEAPIToken=${token}`
  const message = [
    quote,
    Buffer.from(quote).toString('base64'),
    encodeURIComponent(quote),
    quote.slice(0, -8),
  ].join(' ')
  for (const path of [
    '/status/current',
    '/content',
    '/cluster/nextid',
    '/tasks',
    '/access/',
    '/network',
    '/version',
  ])
    sim.faults.add({
      match: { path },
      effect: { kind: 'answer', answer: { status: 500, message, reason: message } },
    })
  stage = await openStage()
  const { clusters, ...rest } = aDocument()
  const config = join(folder, 'config.yml')
  writeFileSync(join(folder, 'token'), token)
  writeFileSync(join(folder, 'admin'), admin)
  writeFileSync(join(folder, 'parameters.yml'), `pw: ${PASSWORD}\n`)
  writeFileSync(config, stringify({ ...rest, clusters: { lab: { ...clusters.lab, endpoints } } }))
  stage.useConfig(config)
  const outcomes: object[] = []
  for (const [index, style] of LETTERS.entries()) outcomes.push(...(await live(`shop-${index}`, style)))
  await live('fine', undefined)
  const sns = new SNSClient({ endpoint: stage.endpoints.sns, region: REGION, credentials })
  for (const event of outcomes)
    await sns.send(new PublishCommand({ TopicArn: stage.topicArn, Message: JSON.stringify(event) }))
  sns.destroy()
  await stage.store({ uid: 'userdata#fine', userData } as unknown as Row)
}, 120_000)
afterAll(async () => {
  await sim.close()
  await stage.close()
  rmSync(folder, { recursive: true })
})

/** Lives in a lab, and takes over to the stage what is left of it. */
async function live(uid: string, style: string | undefined): Promise<object[]> {
  const lab = await openLab({
    nodes: 2,
    passwords: { pw: PASSWORD },
    interpose: ({ surroundings, exchange }) => ({
      surroundings,
      async exchange(endpoint, request) {
        const reply = request.path.endsWith('/upload') ? styles[style ?? '']?.(quoted(request)) : undefined
        if (reply instanceof Error) throw reply
        return reply ?? exchange(endpoint, request)
      },
    }),
  })
  lab.request(uid, { spec: secretSpec })
  await lab.run(() => ['Ready', 'Failed'].includes(lab.row(uid)?.phase ?? ''))
  const row = lab.row(uid)
  if (row) await stage.store(row)
  // What cannot be read is kept to the letter.
  lab.request(`bad-${uid}`, { name: 'a_b', spec: secretSpec })
  await lab.run()
  for (const { side, body, obituary } of lab.queues.deadLetters) await stage.bury(side, body, obituary)
  await lab.close()
  return lab.outcomes
}

describe('of the token, the password and the publisher’s userData', () => {
  it('no command shows anything, for a person or for a program', { timeout: 180_000 }, async () => {
    const file = (name: string, text: string) => {
      const path = join(folder, name)
      writeFileSync(path, text)
      return path
    }
    const request = { name: 'a', spec: { zone: 'lab-1', image: 'debian-12', ...secretSpec } }
    const bad = [
      JSON.stringify({ ...request, spec: { ...request.spec, userData: [userData] } }),
      JSON.stringify({
        ...request,
        spec: { ...request.spec, userData: `#cloud-config\n${USER_DATA_LINE}: [` },
      }),
      JSON.stringify({
        ...request,
        spec: { ...request.spec, proxy: { auth: { username: 'ci', password: PASSWORD } } },
      }),
      JSON.stringify({ ...request, userData, password: PASSWORD }),
      // The block of a text that lost its indentation.
      `name: a\nspec:\n  zone: lab-1\n  userData: |\n#!/bin/sh\n${USER_DATA_LINE}\n`,
      `name: a\nspec:\n  userData: *${USER_DATA_LINE}\n`,
      `name: a\nspec:\n  userData: !${PASSWORD} ${USER_DATA_LINE}\n`,
      `name: a\nspec:\n  userData: "${USER_DATA_LINE}\n`,
    ].map((text, index) => ['request', '--file', file(`bad-${index}.yml`, text)])
    const uids = [...LETTERS.map((_, index) => `shop-${index}`), 'fine']
    const both = (...line: string[]) => [line, [...line, '--json']]
    const config = ['--config', join(folder, 'config.yml')]
    const lines = [
      ...both('list', '--all'),
      ...uids.flatMap((uid) => [...both('get', uid), ['dlq', 'show', uid]]),
      ...['shop-0', 'fine'].flatMap((uid) => both('explain', uid)),
      ['dlq', 'show', 'shop-0', '--json'],
      ['get', 'userdata#fine'],
      ['explain', 'userdata#fine'],
      ['delete', 'userdata#fine'],
      ...both('dlq', 'ls'),
      ...both('dlq', 'ls', '--messages'),
      ...both('check', '--all'),
      ...both('check', '--stored', '--all'),
      ['check', '--role'],
      ...both('check', ...config),
      ...both('gc', 'plan'),
      ...both('gc', 'run'),
      ...both('gc', 'last'),
      ...bad,
      [
        'dlq',
        'redrive',
        'bad-shop-0',
        '--body',
        file('mended.json', JSON.stringify({ ...request, userData })),
      ],
      ['dlq', 'redrive', 'shop-0'],
      ['dlq', 'redrive', 'shop-1', '--json'],
      ['dlq', 'drop', 'bad-shop-1', '--reason', 'seen', '--yes'],
      ['dlq', 'drop', '--overtaken', '--reason', 'seen', '--yes'],
      ['events', '--take', '--json', '--count', '2'],
      ['events', '--take'],
      ['token', 'rotate', '--cluster', 'lab', ...config],
      ['token', 'rotate', '--cluster', 'lab', ...config, '--admin-token-file', join(folder, 'admin')],
      [
        'token',
        'rotate',
        '--cluster',
        'lab',
        ...config,
        '--admin-token-file',
        join(folder, 'parameters.yml'),
      ],
      [
        'token',
        'rotate',
        '--cluster',
        'lab',
        ...config,
        '--admin-token-file',
        file('odd', `${admin}\n${admin}`),
      ],
    ].map((line) => (line[0] === 'token' ? line : [...line, '--data', stage.folder]))
    const { ran } = await egressSeveral(lines, { env: { EGRESS_DEBUG: '1' } })
    expect(ran.filter(({ code }) => code === null)).toEqual([])
    for (const { line, out, err } of ran) expect(out + err, line.join(' ')).not.toBe('')
    // They do show those lives.
    expect(ran[1]?.out).toContain('"uid": "shop-0"')
    expectNoTrace(Object.fromEntries(ran.map(({ line, out, err }) => [line.join(' '), out + err])), secrets)
  })

  it.each([
    ['is no token', [], `no token ${PASSWORD}`],
    ['the cluster cannot be asked about', [], undefined],
  ])('egress token set shows nothing of one that %s', async (_, flags, input) => {
    const token = readFileSync(join(folder, 'token'), 'utf8')
    const args = ['token', 'set', '--cluster', 'lab', '--config', join(folder, 'config.yml'), ...flags]
    const { out, err } = await egress(args, { input: input ?? token, env: { EGRESS_DEBUG: '1' } })
    expect(out + err).not.toBe('')
    expectNoTrace({ shown: out + err }, secrets)
  })
})
