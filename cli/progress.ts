import { Listr, PRESET_TIMER } from 'listr2'
import { CREATE_STEPS, DELETE_STEPS, type Row } from '../lib/record.ts'
import type { End } from './follow.ts'
import { duration } from './format.ts'
import { visible } from './visible.ts'

/** What is being waited for, as a person reads it step by step. */
const words: Record<string, string> = {
  reserve: 'reserve a place on a node and a VMID',
  clone: 'clone the template',
  seed: 'upload the seed the VM boots with',
  configure: 'configure the VM',
  start: 'start it',
  address: 'learn its address',
  verify: 'see a request go through the proxy',
  stop: 'stop the VM',
  unseed: 'delete the seed',
  destroy: 'destroy the VM and its disks',
  release: 'prove it gone and give back what it held',
}

export type Direction = 'create' | 'delete'
const stepsOf = (direction: Direction): readonly string[] =>
  direction === 'create' ? CREATE_STEPS : DELETE_STEPS

export type Screen = { line(text: string): void; isTTY: boolean }

/** Shows a row's way through its steps while it is followed: live on a terminal, a line a step elsewhere. */
export async function showProgress(
  direction: Direction,
  screen: Screen,
  follow: (onChange: (row: Row) => void) => Promise<End>,
): Promise<End> {
  return screen.isTTY ? onTerminal(direction, follow) : inLines(direction, screen, follow)
}

async function inLines(
  direction: Direction,
  screen: Screen,
  follow: (onChange: (row: Row) => void) => Promise<End>,
): Promise<End> {
  const told = new Set<string>()
  const tell = (key: string, text: string) => {
    if (told.has(key)) return
    told.add(key)
    screen.line(text)
  }
  return follow((row) => {
    for (const { step, at, ms, outcome } of row.timeline) {
      // What an earlier life of this uid went through is not news.
      const isOld = direction === 'delete' ? !stepsOf('delete').includes(step) : at < row.requestedAt
      if (passed(outcome) && !isOld) tell(`${step} ${at}`, line(step, `${words[step]} (${duration(ms)})`))
    }
    const { problem, turn } = row
    if (problem && row.step) {
      tell(`${turn} ${problem.code}`, line(row.step, `${problem.code}: ${problem.reason}`))
    }
  })
}

const line = (step: string, text: string) => `  ${step.padEnd(10)} ${visible(text)}`

async function onTerminal(
  direction: Direction,
  follow: (onChange: (row: Row) => void) => Promise<End>,
): Promise<End> {
  const steps = stepsOf(direction)
  const gates = steps.map(() => Promise.withResolvers<void>())
  // A gate behind the one that failed is waited for by nobody.
  for (const { promise } of gates) promise.catch(() => undefined)
  let current: { output: string } | undefined
  const list = new Listr<object, 'default', 'simple'>(
    steps.map((step, index) => ({
      title: `${step}: ${words[step]}`,
      task: (_, task) => {
        current = task
        return gates[index]?.promise
      },
    })),
    // How Ctrl-C ends things is ours to say: listr2 would end the process there and then.
    { concurrent: false, registerSignalListeners: false, rendererOptions: { timer: PRESET_TIMER } },
  )
  const shown = list.run().catch(() => undefined)
  try {
    const end = await follow((row) => {
      // A row at rest has yet to be taken up, or has come to its end, which opens every gate.
      const at = row.step === undefined ? 0 : Math.max(steps.indexOf(row.step), 0)
      for (const gate of gates.slice(0, at)) gate.resolve()
      if (current && row.problem) current.output = visible(`${row.problem.code}: ${row.problem.reason}`)
    })
    for (const gate of gates) {
      if (end.kind === 'met') gate.resolve()
      else gate.reject(new Error(visible(end.reason)))
    }
    return end
  } finally {
    // What is still open when the wait was called off would be drawn for ever.
    for (const gate of gates) gate.reject(new Error('called off'))
    await shown
  }
}

/** A step that was left for another one, not given up. */
const passed = (outcome: string) => outcome === 'done' || (outcome !== 'report' && outcome in words)
