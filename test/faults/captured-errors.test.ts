import { describe, expect, it } from 'vitest'
import { errorClass, type ProxmoxErrorCode } from '../../lib/proxmox/index.ts'
import type { Row } from '../../lib/record.ts'
import type { FaultRule } from '../../sim/index.ts'
import { type Lab, openLab, settled } from '../lab/lab.ts'
import { failedEnds, refusals } from './captured.ts'

/** A call occurs at several steps of a life: the fault strikes at its first occurrence, then its second, and so on. */
const MOST_OCCURRENCES = 40

/** What the life that met the fault came to: the failure it was reported with, if any. */
type Ending = { struck: boolean; failures: Row[] }

/** A whole life with one fault in it. A failed one is run again, as an operator would, and must then end well. */
async function live(version: 8 | 9, rule: FaultRule): Promise<Ending> {
  const lab = await openLab({ version })
  try {
    const id = lab.sim.faults.add({ ...rule, times: 1 })
    const failures: Row[] = []
    lab.request('alpha')
    await toTheEnd(lab, 'Ready', failures)
    lab.remove('alpha')
    await toTheEnd(lab, 'Deleted', failures)
    await lab.run()
    expect(lab.leftOvers()).toEqual({ vms: [], volumes: [] })
    expect(lab.claims.all()).toEqual([])
    expect(lab.queues.deadLetters.map(({ obituary }) => obituary.code)).toEqual(
      failures.map(({ problem }) => problem?.code),
    )
    return { struck: lab.sim.faults.list().some((one) => one.id === id && one.struck > 0), failures }
  } finally {
    await lab.close()
  }
}

async function toTheEnd(lab: Lab, end: Row['phase'], failures: Row[]): Promise<void> {
  for (let redrives = 0; redrives < 3; redrives++) {
    const row = await settled(lab, 'alpha')
    const vms = lab.sim.vms().filter(({ template }) => !template)
    expect(vms.length).toBeLessThanOrEqual(1)
    if (row.phase === end) return
    if (row.phase === 'Failed') {
      failures.push(row)
      lab.queues.publish('create', JSON.stringify({ type: 'Resume', uid: 'alpha', turn: row.turn }))
    }
    await lab.run(() => lab.row('alpha')?.turn !== row.turn)
  }
  expect.fail(`alpha does not come to be ${end}: ${JSON.stringify(lab.row('alpha')?.problem)}`)
}

/** A failure is only ever one that a person must act on. */
function expectPermanent(failures: Row[]) {
  for (const { problem } of failures) {
    const known = Object.hasOwn(errorClass, problem?.code ?? '')
    if (known) expect(errorClass[problem?.code as ProxmoxErrorCode]).toBe('permanent')
  }
}

async function atEachOccurrence(
  version: 8 | 9,
  rule: FaultRule,
  judge: (ending: Ending) => void,
): Promise<number> {
  for (let skip = 0; skip < MOST_OCCURRENCES; skip++) {
    const ending = await live(version, { ...rule, skip })
    if (!ending.struck) return skip
    judge(ending)
    expectPermanent(ending.failures)
  }
  return MOST_OCCURRENCES
}

describe.each([8, 9] as const)('an error of PVE %i, met once at each step it can occur in', (version) => {
  it.each(
    refusals(version).map((one) => [`${one.call}: ${one.answer.status} ${text(one.answer)}`, one] as const),
  )('%s', async (_, { method, path, answer }) => {
    const occurrences = await atEachOccurrence(
      version,
      { match: { method, path }, effect: { kind: 'answer', answer } },
      ({ failures }) => {
        if ([401, 595, 596].includes(answer.status) || isTransientText(answer)) expect(failures).toEqual([])
        // A refusal of a change is a person's business, and is called by its name.
        if (answer.status === 403 && method !== 'GET') expect(codesOf(failures)).toEqual(['Forbidden'])
        if (answer.status === 400 && answer.errors && method !== 'GET') expect(failures).toHaveLength(1)
      },
    )
    expect(occurrences).toBeGreaterThan(0)
  })

  it.each(failedEnds(version).map((one) => [`${one.taskType}: ${one.exitText}`, one] as const))(
    'task %s',
    async (_, { taskType, exitText }) => {
      const rule: FaultRule = {
        match: { taskType },
        effect: { kind: 'taskFails', exitText, effects: 'none' },
      }
      const occurrences = await atEachOccurrence(version, rule, ({ failures }) => {
        if (isTransientText({ message: exitText })) expect(failures).toEqual([])
      })
      expect(occurrences).toBeGreaterThan(0)
    },
  )
})

const codesOf = (failures: Row[]) => failures.map(({ problem }) => problem?.code)

/** The transient words of Proxmox, written down here by hand and not asked of the client. */
function isTransientText({ message = '' }: { message?: string }): boolean {
  return /^(clone failed: )?(can't lock file|cfs-lock|cluster not ready|got no worker upid|VM is locked \((?!clone|create|suspended)|checksum mismatch|VM \d+ already running|unable to activate storage)/.test(
    message,
  )
}

function text({
  reason,
  message,
  errors,
}: {
  reason: string
  message?: string
  errors?: Record<string, string>
}) {
  return (errors ? JSON.stringify(errors) : (message ?? reason)).trim().slice(0, 100)
}
