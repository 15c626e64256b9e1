import type { Claim } from '../lib/claims.ts'
import { counted } from '../lib/counted.ts'
import type { Foresight } from '../lib/foresight.ts'
import type { Row } from '../lib/record.ts'
import type { CloseLook } from './close-look.ts'
import { describeRow } from './describe-row.ts'
import { duration, instant } from './format.ts'
import type { QueueCounts } from './queue-counts.ts'
import { visible } from './visible.ts'

export type Explained = {
  row: Row
  lease?: { until: number } | undefined
  look: CloseLook
  claims: readonly Claim[]
  queues: Record<'create' | 'delete', QueueCounts>
  next: Foresight
  /** Seconds past `dueAt` from which gc kicks a row. */
  stallSeconds: number
}

/** All that is known of a proxy, for a person who wonders what it is doing. */
export function describeExplained(explained: Explained, now: number): string {
  const { row, lease, look, claims, queues, next } = explained
  const about = (lines: [string, string | undefined][]) =>
    lines.flatMap(([label, value]) => (value === undefined ? [] : [`${label.padEnd(11)} ${visible(value)}`]))
  return [
    describeRow(row, now),
    '',
    'now',
    ...about([
      ['  lease', leaseText(lease, now)],
      ['  VM', vmText(look)],
      ['  state', look.status && stateText(look.status)],
      ['  lock', look.found?.kind === 'vm' ? look.found.config.lock : undefined],
      ['  tasks', look.running.map(({ upid, node }) => `${upid} on ${node}`).join(', ') || undefined],
      ['  seed', seedText(row, look)],
      ['  claims', claims.map(({ partition, sort }) => `${partition}/${sort}`).join(', ') || 'none'],
      ['  messages', messagesText(queues)],
      ...look.unseen.map((what): [string, string] => ['  not seen', what]),
    ]),
    '',
    'next',
    ...about([
      ['  when', whenText(explained, now)],
      ['  what', next.what],
      ['  because', next.why],
    ]),
  ].join('\n')
}

const leaseText = (lease: { until: number } | undefined, now: number) =>
  lease &&
  (lease.until >= now
    ? `held until ${instant(lease.until)}`
    : `of a dead holder, over since ${instant(lease.until)}`)

function vmText({ found, view }: CloseLook): string | undefined {
  if (!found) return undefined
  if (found.kind === 'absent') return 'none: the number is free, by proof'
  if (found.kind === 'hidden') return 'something our token may not see holds the number'
  if (found.kind === 'container') return `a container on ${found.node} holds the number`
  if (found.kind === 'unknown') return `not known: ${found.reason}`
  const { name = '(no name yet)', cores, memoryMiB, tags } = found.config
  const whose =
    view.sight?.kind === 'ours' ? 'ours' : view.sight?.kind === 'gone' ? 'another’s' : 'cannot be judged'
  return `${name} on ${found.node}, ${whose}; ${counted(cores, 'core')}, ${memoryMiB} MiB, tags ${[...tags].join(' ') || 'none'}`
}

const stateText = ({ running, qmp }: { running: boolean; qmp: string }) => (running ? 'running' : qmp)

function seedText({ seed }: Row, { seed: seen }: CloseLook): string | undefined {
  if (seed === undefined) return undefined
  if (!seen || seen.looked.length === 0) return `${seed}, where it lies was not seen`
  return seen.on.length > 0 ? `${seed} on ${seen.on.join(', ')}` : `${seed}, not on ${seen.looked.join(', ')}`
}

/** Which of them are this proxy's cannot be known: reading a queue takes its messages from the functions. */
function messagesText({ create, delete: others }: Explained['queues']): string {
  const text = ({ visible: waiting, inFlight, delayed }: QueueCounts) =>
    `${waiting} waiting, ${inFlight} being worked on, ${delayed} for later`
  return `of all proxies, about: create ${text(create)}; delete ${text(others)}`
}

function whenText({ row, stallSeconds }: Explained, now: number): string | undefined {
  const { step, dueAt } = row
  if (step === undefined) return undefined
  if (dueAt > now) return `in ${duration(dueAt - now)}, at ${instant(dueAt)}`
  const late = now - dueAt
  if (late <= stallSeconds * 1000) return `due since ${duration(late)}`
  return `overdue by ${duration(late)}: its message is lost, and gc sends another`
}
