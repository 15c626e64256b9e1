import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it as plainIt } from 'vitest'
import type { Row } from '../../lib/record.ts'
import { aRow } from '../lib/a-row.ts'
import { binary, egress, root } from './egress.ts'
import { openStage, type Stage } from './stage.ts'

const it = plainIt.extend<{ stage: Stage }>({
  // Vitest reads from the pattern what a fixture needs, which is nothing.
  // biome-ignore lint/correctness/noEmptyPattern: see above
  stage: async ({}, use) => {
    const stage = await openStage()
    await use(stage)
    await stage.close()
  },
})

const continued = (uid: string, turn: number) => JSON.stringify({ type: 'Continue', uid, turn })

/** A row that failed, and its letter: reported at the turn before the one it rests at. */
async function failed(stage: Stage, uid: string, over: Partial<Row> = {}, code = 'NoSpace'): Promise<Row> {
  const problem = {
    code: 'NoSpace',
    reason: 'vmdata is full',
    hint: 'make room',
    firstAt: 1,
    lastAt: 2,
    times: 1,
  } as const
  const { step: _, ...rest } = aRow({ uid })
  const row: Row = { ...rest, phase: 'Failed', failedStep: 'clone', turn: 8, problem, ...over }
  await stage.store(row)
  await letterOf(stage, row, code)
  return row
}

function letterOf(stage: Stage, { uid, turn, failedStep }: Row, code = 'NoSpace') {
  const side = failedStep === 'destroy' ? 'delete' : 'create'
  return stage.bury(side, continued(uid, turn - 1), {
    code,
    uid,
    turn: turn - 1,
    step: failedStep ?? 'clone',
    failedAt: '2026-01-01T00:00:00.000Z',
    problem: {
      reason: 'vmdata is full',
      hint: 'make room',
      zone: 'lab-1',
      cluster: 'lab',
      node: 'pve1',
      vmid: 5001,
    },
  })
}

const published = (over: object = {}) =>
  JSON.stringify({
    type: 'ProxyRequested',
    uid: 'shop',
    name: 'sh_op',
    spec: { zone: 'lab-1', image: 'debian-12', userData: 'hush' },
    ...over,
  })

const invalid = (stage: Stage, body = published()) =>
  stage.bury('create', body, {
    code: 'InvalidEvent',
    failedAt: '2026-01-02T00:00:00.000Z',
    problem: { reason: 'name: got "sh_op", wanted no underscore', hint: 'correct it' },
  })

describe.concurrent('egress dlq ls', () => {
  it('says that there are none', async ({ stage }) => {
    expect(await stage.here('dlq', 'ls')).toEqual({ code: 0, out: '', err: 'no dead letters\n' })
  })

  // Report: mozilla/watchdog-proxy#13
  it('groups letters of both queues by cause, and gives all of them back', async ({ stage }) => {
    for (let index = 0; index < 25; index++)
      await failed(stage, `p${index}`, { failedStep: index % 2 ? 'destroy' : 'clone' })
    await invalid(stage)
    await stage.giveUp('create', continued('gone', 3))
    await stage.store({ ...aRow({ uid: 'p0' }), turn: 20 })

    const { code, out, err } = await stage.here('dlq', 'ls')
    expect(code).toBe(0)
    const [head, first, ...others] = out.trimEnd().split('\n')
    expect(head).toMatch(/^CODE +COUNT +OVERTAKEN +OLDEST +NEWEST +ZONE +NODE +REASON$/)
    expect(first).toMatch(/^NoSpace +25 +1 .* lab-1 +pve1 +vmdata is full$/)
    expect(others.join('\n')).toMatch(/^InvalidEvent +1 .*name: got "sh_op"/m)
    expect(others.join('\n')).toMatch(/^Undelivered +1 +1 .*received so often that SQS gave it up$/m)
    expect(err).toContain('2 overtaken by their rows')
    // At once, not after a time-out.
    expect(await stage.letters()).toHaveLength(27)
  })

  it('shows a line each, or documents, without the body of what was published', async ({ stage }) => {
    await failed(stage, 'alpha')
    await invalid(stage)
    const { out } = await stage.here('dlq', 'ls', '--messages')
    expect(out).toMatch(
      /^2026-01-01T00:00:00.000Z {2}NoSpace {2}alpha {2}clone {2}lab-1\/pve1 {2}vmdata is full$/m,
    )
    expect(out).toMatch(/ {2}InvalidEvent {2}shop {2}/)
    expect(out).not.toContain('hush')
    const lines = (await stage.here('dlq', 'ls', '--messages', '--json')).out.trim().split('\n')
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { code: 'NoSpace', uid: 'alpha', turn: 7, remedy: 'resume', problem: { hint: 'make room' } },
      { code: 'InvalidEvent', uid: 'shop', kind: 'event', remedy: 'again' },
    ])
    expect(lines.join()).not.toContain('hush')
    expect(JSON.parse((await stage.here('dlq', 'ls', '--json')).out)).toMatchObject([
      { count: 1 },
      { count: 1 },
    ])
    expect((await stage.here('dlq', 'ls', '--messages', '--code', 'NoSpace')).out.split('\n')).toHaveLength(2)
  })

  it('gives back what it holds when it is called off', async ({ stage }) => {
    for (let index = 0; index < 300; index++) await stage.giveUp('delete', continued(`p${index}`, 3))
    const child = spawn(process.execPath, [binary, 'dlq', 'ls', '--messages', '--data', stage.folder], {
      cwd: root,
    })
    await once(child.stdout, 'data')
    child.kill('SIGINT')
    let err = ''
    child.stderr.on('data', (text) => {
      err += text
    })
    expect(await once(child, 'exit')).toEqual([1, null])
    expect(err).toContain('given back')
    expect(await stage.letters()).toHaveLength(300)
  })
})

describe.concurrent('egress dlq show', () => {
  it('tells the reason, the hint, the history and the line to type', async ({ stage }) => {
    const timeline = [{ step: 'reserve', at: 0, ms: 1500, outcome: 'clone' }] as const
    await failed(stage, 'alpha', { timeline: [...timeline] })
    const { code, out } = await stage.here('dlq', 'show', 'alpha')
    expect(code).toBe(0)
    expect(out).toMatch(/^code +NoSpace$/m)
    expect(out).toMatch(/^where +lab-1, lab, pve1, VM 5001$/m)
    expect(out).toMatch(/^hint +make room$/m)
    expect(out).toMatch(/^body +\{"type":"Continue","uid":"alpha","turn":7\}$/m)
    expect(out).toMatch(/^state +can be run again from clone$/m)
    expect(out).toMatch(/^then +egress dlq redrive alpha$/m)
    expect(out).toMatch(/^ {2}state +Failed, at clone$/m)
    expect(out).toMatch(/reserve +1\.5 s +clone$/m)
    expect(await stage.letters()).toHaveLength(1)
  })

  it('hides what was published, but for --raw, which prints it to the letter', async ({ stage }) => {
    const body = ` ${published()}\n`
    await invalid(stage, body)
    const { out } = await stage.here('dlq', 'show', 'shop')
    expect(out).not.toContain('hush')
    expect(out).toContain(`${body.length} bytes as published`)
    const id = /^message +(\S+)/m.exec(out)?.[1] ?? ''
    expect(out).toContain(`egress dlq redrive ${id} --body <file>`)
    expect((await stage.here('dlq', 'show', 'shop', '--json')).out).not.toContain('hush')
    expect((await stage.here('dlq', 'show', id.slice(0, 8), '--raw')).out).toBe(body)
  })

  it('shows nothing that a terminal would obey', async ({ stage }) => {
    await stage.giveUp('create', '{"a":"\u001b[2J"}'.replace('\u001b', '\u009b'))
    const letter = (await stage.letters())[0]?.MessageId ?? ''
    const { out } = await stage.here('dlq', 'show', letter)
    expect(out).not.toMatch(/(?!\n)\p{Cc}/u)
  })

  it('of what is not there ends with 1', async ({ stage }) => {
    const { code, err } = await stage.here('dlq', 'show', 'nobody')
    expect({ code, err }).toEqual({ code: 1, err: 'no dead letter is of nobody\n' })
  })
})

describe.concurrent('egress dlq redrive', () => {
  it('sends a Resume of the row’s own turn to the queue of its failed step, then removes its letters', async ({
    stage,
  }) => {
    const row = await failed(stage, 'alpha', { failedStep: 'destroy', wish: 'absent' })
    await letterOf(stage, { ...row, turn: 5 })
    await failed(stage, 'beta')
    expect(await stage.here('dlq', 'redrive', 'alpha')).toMatchObject({
      code: 0,
      out: 'alpha  run again from destroy\n',
    })
    expect(await stage.bodies('delete')).toEqual([{ type: 'Resume', uid: 'alpha', turn: 8 }])
    expect(await stage.bodies('create')).toEqual([])
    expect((await stage.letters()).map(({ Body }) => Body)).toEqual([continued('beta', 7)])
  })

  it('goes on with the trace that its letter is of', async ({ stage }) => {
    const { uid, turn } = await failed(stage, 'alpha')
    const carrier = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, tracestate: 'shop=1' }
    const about = { code: 'Forbidden', uid, turn, step: 'clone', failedAt: '2026-01-01T00:00:00.000Z' }
    await stage.bury('create', continued(uid, turn - 1), { ...about, problem: {}, carrier })
    await stage.here('dlq', 'redrive', '--code', 'Forbidden')
    const [message] = await stage.messages('create')
    expect(message?.MessageAttributes).toMatchObject({
      traceparent: { StringValue: carrier.traceparent },
      tracestate: { StringValue: 'shop=1' },
    })
  })

  it('runs a failed row again whose letter was lost', async ({ stage }) => {
    await stage.store({ ...(await failed(stage, 'alpha')), uid: 'lost' })
    expect((await stage.here('dlq', 'redrive', 'lost')).out).toBe('lost  run again from clone\n')
    expect(await stage.bodies('create')).toEqual([{ type: 'Resume', uid: 'lost', turn: 8 }])
    expect(await stage.letters()).toHaveLength(1)
  })

  it('leaves a letter whose row has moved on, and one that is ahead of it', async ({ stage }) => {
    const row = await failed(stage, 'alpha')
    await stage.store({ ...row, phase: 'Ready', turn: 12 })
    const ahead = await failed(stage, 'beta')
    await letterOf(stage, { ...ahead, turn: 30 })
    const alpha = await stage.here('dlq', 'redrive', 'alpha')
    expect(alpha).toMatchObject({ code: 1, out: 'alpha  left: overtaken: its row is Ready\n' })
    await stage.here('dlq', 'redrive', 'beta')
    expect(await stage.bodies('create')).toEqual([{ type: 'Resume', uid: 'beta', turn: 8 }])
    expect((await stage.letters()).map(({ Body }) => Body)).toEqual([
      continued('alpha', 7),
      continued('beta', 29),
    ])
  })

  it('runs all of a cause again, each row once', async ({ stage }) => {
    const rows = await Promise.all(
      Array.from({ length: 12 }, (_, index) => failed(stage, `p${index}`, {}, 'Forbidden')),
    )
    for (const row of rows) await letterOf(stage, row, 'Forbidden')
    await failed(stage, 'other')
    const { err } = await stage.here('dlq', 'redrive', '--code', 'Forbidden')
    expect(err).toContain('12 sent, 0 left')
    expect((await stage.bodies('create')).map(({ uid }) => uid).sort()).toEqual(
      rows.map(({ uid }) => uid).sort(),
    )
    expect(await stage.letters()).toHaveLength(1)
  })

  // Report: honglu/aws-sqs-dlq-redriver#2
  it('sends what was published again as it is, or mended; a bad one is refused before', async ({ stage }) => {
    await invalid(stage)
    const file = join(stage.folder, 'event.json')
    writeFileSync(file, published({ name: 'sh_op2' }))
    const bad = await stage.here('dlq', 'redrive', 'shop', '--body', file)
    expect(bad.code).toBe(2)
    expect(bad.err).toContain('name: got "sh_op2", wanted')
    writeFileSync(file, published({ name: 'sh-op', spec: { zone: 'mars', image: 'debian-12' } }))
    expect((await stage.here('dlq', 'redrive', 'shop', '--body', file)).err).toContain(
      'spec.zone: got "mars"',
    )
    expect(await stage.letters()).toHaveLength(1)

    writeFileSync(file, published({ name: 'sh-op' }))
    expect(await stage.here('dlq', 'redrive', 'shop', '--body', file)).toMatchObject({ code: 0 })
    expect(await stage.bodies('create')).toMatchObject([{ name: 'sh-op' }])
    expect(await stage.letters()).toEqual([])

    await invalid(stage, published({ uid: 'other' }))
    expect((await stage.here('dlq', 'redrive', '--all')).out).toMatch(/^other {2}sent again$/m)
    expect(await stage.bodies('create')).toContainEqual(
      expect.objectContaining({ uid: 'other', name: 'sh_op' }),
    )
  })

  it('makes a kick of a message that SQS gave up, once its row counts as stalled', async ({ stage }) => {
    await stage.store(aRow({ uid: 'stalled', turn: 4 }))
    await stage.giveUp('create', continued('stalled', 4))
    await stage.store(aRow({ uid: 'busy', turn: 4, dueAt: Date.now() }))
    await stage.giveUp('create', continued('busy', 4))
    const { out } = await stage.here('dlq', 'redrive', '--all')
    expect(out).toMatch(/^stalled {2}kicked at clone$/m)
    expect(out).toMatch(/^busy {2}left: pending: its row is at clone and counts as stalled from /m)
    expect(await stage.bodies('create')).toEqual([{ type: 'Resume', uid: 'stalled', turn: 4 }])
    expect(await stage.letters()).toHaveLength(1)
  })

  it.each([
    ['nothing said', []],
    ['too much said', ['alpha', '--all']],
    ['a body for no message', ['--all', '--body', 'x']],
  ])('is refused with %s', async (_, args) => {
    expect(await egress(['dlq', 'redrive', ...args])).toMatchObject({ code: 2, out: '' })
  })
})

describe.concurrent('egress dlq drop', () => {
  it('keeps a record without the body, then removes the letter', async ({ stage }) => {
    await invalid(stage)
    await failed(stage, 'alpha')
    expect(await stage.here('dlq', 'drop', 'shop', '--reason', 'its team is gone', '--yes')).toMatchObject({
      code: 0,
    })
    expect((await stage.letters()).map(({ Body }) => Body)).toEqual([continued('alpha', 7)])
    const [record, ...others] = await stage.claims()
    expect(others).toEqual([])
    expect(record).toMatchObject({
      partition: 'dropped',
      code: 'InvalidEvent',
      uid: 'shop',
      reason: 'its team is gone',
    })
    expect(JSON.stringify(record)).not.toContain('hush')
    expect(record).not.toHaveProperty('owner')
  })

  it('drops what is overtaken, and nothing else', async ({ stage }) => {
    await stage.store({ ...(await failed(stage, 'alpha')), phase: 'Deleted', turn: 20 })
    await failed(stage, 'beta')
    const { code, out } = await stage.here('dlq', 'drop', '--overtaken', '--reason', 'seen to', '-y')
    expect(code).toBe(0)
    expect(out).toMatch(/^\S+ {2}alpha {2}dropped\n$/)
    expect((await stage.letters()).map(({ Body }) => Body)).toEqual([continued('beta', 7)])
  })

  it('does nothing where nobody can be asked', async ({ stage }) => {
    await failed(stage, 'alpha')
    const { code, err } = await stage.here('dlq', 'drop', 'alpha', '--reason', 'x')
    expect(code).toBe(2)
    expect(err).toContain('--yes')
    expect(await stage.letters()).toHaveLength(1)
    expect(await stage.claims()).toEqual([])
  })
})
