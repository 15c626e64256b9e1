import * as fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { Row, readStored, UnreadableRow } from '../../lib/record.ts'
import { UNREADABLE_RECEIVES } from '../../lib/worker.ts'
import { type Lab, openLab, settled } from '../lab/lab.ts'
import { aRow } from '../lib/a-row.ts'
import { mutated } from './mutations.ts'

describe('a stored row, whatever it is,', () => {
  const whole = aRow({
    phase: 'Failed',
    step: undefined,
    failedStep: 'clone',
    task: { upid: 'x', step: 'clone', at: 1 },
    problem: { code: 'NoSpace', reason: 'full', firstAt: 1, lastAt: 2, times: 3 },
    timeline: [{ step: 'reserve', at: 1, ms: 2, outcome: 'clone' }],
    address: '10.0.0.5',
    announced: { generation: 1, address: '10.0.0.5' },
  })

  it('is a row, or told by its uid and the fields that are wrong', () => {
    fc.assert(
      fc.property(mutated(whole), (document) => {
        const item = { ...(document as object), uid: 'alpha' }
        try {
          expect(readStored(Row, item).turn).toBeTypeOf('number')
        } catch (error) {
          expect(error).toBeInstanceOf(UnreadableRow)
          expect((error as Error).message).toMatch(
            /^the row .{1,20000} cannot be read: .+: got .+, wanted .+$/s,
          )
        }
      }),
      { numRuns: 1000 },
    )
  })

  it('is read without what a newer version adds', () => {
    expect(readStored(Row, { ...whole, colour: 'blue' })).toEqual(whole)
  })
})

describe('a row that cannot be read', () => {
  let lab: Lab
  afterEach(() => lab?.close())

  /** Of a newer version: a step that this one does not know. */
  async function strange() {
    lab = await openLab()
    lab.request('alpha')
    await lab.run(() => lab.row('alpha')?.step === 'seed')
    const item = lab.ledger.items().find(({ uid }) => uid === 'alpha')
    if (!item) throw new Error('there is no row')
    const changed = { ...item, uid: 'alpha', step: 'polish' }
    lab.ledger.put(changed)
    return { item: { ...item, uid: 'alpha' }, changed, turn: Number(item.turn) }
  }

  it('is left as it is, and its message becomes a dead letter that says what is wrong', async () => {
    const { changed, turn } = await strange()
    await lab.run()
    expect(lab.queues.deadLetters).toEqual([
      expect.objectContaining({
        side: 'create',
        obituary: expect.objectContaining({
          code: 'RowUnreadable',
          uid: 'alpha',
          turn,
          problem: {
            reason: expect.stringMatching(/^the row alpha cannot be read: step: got "polish", wanted /),
            hint: expect.stringContaining('`egress dlq redrive alpha`'),
          },
        }),
      }),
    ])
    expect(lab.ledger.items()).toEqual([changed])
    const shown = lab.decisions.filter(({ code }) => code === 'RowUnreadable')
    expect(shown).toHaveLength(UNREADABLE_RECEIVES)
  })

  it('is gone on with by the version that can read it, when that comes in time', async () => {
    const { item } = await strange()
    await lab.run(() => lab.decisions.filter(({ code }) => code === 'RowUnreadable').length === 3)
    lab.ledger.put(item)
    expect((await settled(lab, 'alpha')).phase).toBe('Ready')
    expect(lab.queues.deadLetters).toEqual([])
  })

  it('is gone on with once it was mended and its letter is redriven', async () => {
    const { item, turn } = await strange()
    await lab.run()
    lab.ledger.put(item)
    // What `egress dlq redrive` sends for it.
    await lab.clock.advance(3600_000)
    lab.queues.publish('create', JSON.stringify({ type: 'Resume', uid: 'alpha', turn }))
    expect((await settled(lab, 'alpha')).phase).toBe('Ready')
  })

  it('keeps its publisher’s events among the dead letters, to the letter', async () => {
    await strange()
    lab.remove('alpha')
    await lab.run()
    expect(lab.queues.deadLetters.map(({ side, body }) => [side, body])).toContainEqual([
      'delete',
      '{"type":"ProxyDeletionRequested","uid":"alpha"}',
    ])
  })

  it('holds up no other row', async () => {
    await strange()
    lab.request('beta')
    await lab.run(() => lab.ledger.items().some(({ uid, phase }) => uid === 'beta' && phase === 'Ready'))
  })
})
