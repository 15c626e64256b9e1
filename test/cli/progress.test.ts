import { describe, expect, it } from 'vitest'
import type { End } from '../../cli/follow.ts'
import { type Direction, showProgress } from '../../cli/progress.ts'
import { Row, type TimelineEntry } from '../../lib/record.ts'

const entry = (step: TimelineEntry['step'], at: number, outcome: string): TimelineEntry => ({
  step,
  at,
  ms: 1500,
  outcome,
})
const row = (over: Partial<Row>): Row =>
  Row.parse({
    uid: 'u',
    wish: 'present',
    generation: 1,
    phase: 'Provisioning',
    turn: 1,
    since: 0,
    dueAt: 0,
    createdAt: 0,
    requestedAt: 100,
    ...over,
  })

async function shown(direction: Direction, states: Row[]): Promise<string[]> {
  const lines: string[] = []
  const end: End = { kind: 'met' }
  await showProgress(direction, { line: (text) => lines.push(text), isTTY: false }, async (onChange) => {
    for (const state of states) onChange(state)
    return end
  })
  return lines
}

describe('progress', () => {
  it('tells each step once, when it is left', async () => {
    const reserve = entry('reserve', 100, 'clone')
    const lines = await shown('create', [
      row({ step: 'reserve' }),
      row({ step: 'clone', timeline: [reserve] }),
      row({ step: 'clone', turn: 2, timeline: [reserve] }),
      row({ step: 'seed', turn: 3, timeline: [reserve, entry('clone', 200, 'seed')] }),
    ])
    expect(lines).toEqual([
      '  reserve    reserve a place on a node and a VMID (1.5 s)',
      '  clone      clone the template (1.5 s)',
    ])
  })

  it('leaves out what an earlier generation, or an earlier life, went through', async () => {
    const old = entry('reserve', 50, 'clone')
    expect(await shown('create', [row({ timeline: [old, entry('reserve', 150, 'clone')] })])).toHaveLength(1)
    const lines = await shown('delete', [row({ timeline: [old, entry('stop', 150, 'unseed')] })])
    expect(lines).toEqual(['  stop       stop the VM (1.5 s)'])
  })

  it('tells a trouble once, and no step as left that was given up', async () => {
    const problem = { code: 'NoSpace', reason: 'full', firstAt: 0, lastAt: 0, times: 1 } as const
    const lines = await shown('create', [
      row({ step: 'seed', problem }),
      row({ step: 'seed', problem: { ...problem, times: 2 } }),
      row({ step: 'report', turn: 2, timeline: [entry('seed', 150, 'NoSpace')] }),
    ])
    expect(lines).toEqual(['  seed       NoSpace: full'])
  })
})
