import { describe, expect, it } from 'vitest'
import { createAdmission } from '../../../lib/proxmox/admission.ts'
import { ProxmoxError, type ProxmoxErrorFields } from '../../../lib/proxmox/errors.ts'

/** Calls that are in flight until the test answers them. */
function calls() {
  const admit = createAdmission()
  const inFlight: { where: string; answer(error?: Error): void }[] = []
  const ask = (where: string) =>
    admit(
      where,
      () =>
        new Promise<void>((resolve, reject) => {
          inFlight.push({ where, answer: (error) => (error ? reject(error) : resolve()) })
        }),
    ).catch(() => {})
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  return {
    inFlight,
    ask: async (where: string, count: number) => {
      for (let index = 0; index < count; index++) void ask(where)
      await settled()
    },
    answer: async (count: number, error?: Error) => {
      for (const call of inFlight.splice(0, count)) call.answer(error)
      await settled()
    },
  }
}

const failing = (fields: Pick<ProxmoxErrorFields, 'code' | 'sent'>) =>
  new ProxmoxError('no', { call: 'GET /x', ambiguous: false, ...fields })
const timedOut = failing({ code: 'Unreachable', sent: 'maybe' })

describe('admission', () => {
  it('lets six calls to a node be in flight, and the next when one has its answer', async () => {
    const { inFlight, ask, answer } = calls()
    await ask('pve1', 9)
    expect(inFlight).toHaveLength(6)
    await answer(1)
    expect(inFlight).toHaveLength(6)
  })

  it('does not let one node hold up another', async () => {
    const { inFlight, ask } = calls()
    await ask('pve1', 9)
    await ask('pve2', 2)
    expect(inFlight.filter(({ where }) => where === 'pve2')).toHaveLength(2)
  })

  it.each([
    ['gives no answer in time', timedOut],
    ['has locks that do not come free', failing({ code: 'Locked', sent: 'yes' })],
    ['has no worker', failing({ code: 'NoWorker', sent: 'yes' })],
  ])('halves what a node gets that %s, down to one call', async (_, error) => {
    const { inFlight, ask, answer } = calls()
    await ask('pve1', 30)
    await answer(1, error)
    await answer(2)
    expect(inFlight).toHaveLength(3)
    await answer(2, error)
    expect(inFlight).toHaveLength(1)
    await answer(1, error)
    expect(inFlight).toHaveLength(1)
  })

  it('gives one more for each round of good answers, up to six again', async () => {
    const { inFlight, ask, answer } = calls()
    await ask('pve1', 60)
    await answer(6, timedOut)
    const seen = []
    for (let round = 0; round < 7; round++) {
      await answer(inFlight.length)
      seen.push(inFlight.length)
    }
    expect(seen).toEqual([2, 3, 4, 5, 6, 6, 6])
  })

  it.each([
    ['a refusal', failing({ code: 'Forbidden', sent: 'yes' })],
    ['a connection that was refused', failing({ code: 'Unreachable', sent: 'no' })],
  ])('takes nothing away for %s', async (_, error) => {
    const { inFlight, ask, answer } = calls()
    await ask('pve1', 30)
    await answer(6, error)
    expect(inFlight).toHaveLength(6)
  })
})
