import { counted } from '../lib/counted.ts'
import type { Row } from '../lib/record.ts'
import { duration, instant } from './format.ts'
import { visible } from './visible.ts'

/** A row for a person: what matters first, one line each. */
export function describeRow(row: Row, now: number): string {
  const { place, problem, spec, endpoint, readyAt, expiresAt } = row
  const lines: [string, string | undefined][] = [
    ['uid', row.uid],
    ['name', row.name],
    ['state', stateText(row)],
    [
      'wanted',
      row.wish === 'absent' && row.phase === 'Failed' ? 'nothing: its deletion was asked for' : undefined,
    ],
    ['proxy', endpoint],
    ['VM', place && `${place.vmid} on ${place.node} (${place.cluster})`],
    ['zone', spec && `${spec.zone}, ${spec.image}`],
    [
      'size',
      spec && `${counted(spec.size.cores, 'core')}, ${spec.size.memoryMiB} MiB, ${spec.size.diskGiB} GiB`,
    ],
    ['allowed', spec?.proxy.allow.join(', ')],
    [
      'labels',
      spec?.labels &&
        Object.entries(spec.labels)
          .map((pair) => pair.join('='))
          .join(', '),
    ],
    ['generation', spec && String(row.generation)],
    [spec ? 'asked for' : 'heard of', `${instant(row.requestedAt)} (${duration(now - row.requestedAt)} ago)`],
    ['ready', readyAt === undefined ? undefined : `after ${duration(readyAt - row.requestedAt)}`],
    ['expires', expiresAt === undefined ? undefined : instant(expiresAt)],
    ['problem', problem && `${problem.code}: ${problem.reason}`],
    ['', problem && timesText(problem)],
    ['hint', problem?.hint],
  ]
  const told = lines.flatMap(([label, value]) =>
    value === undefined ? [] : [[label, visible(value)] as const],
  )
  const history = row.timeline.map(
    ({ step, at, ms, outcome }) =>
      `  ${instant(at)} ${step.padEnd(10)} ${duration(ms).padStart(8)}  ${visible(outcome)}`,
  )
  return [
    ...told.map(([label, value]) => `${label.padEnd(11)} ${value}`),
    ...(history.length > 0 ? ['', 'steps', ...history] : []),
  ].join('\n')
}

/** It was met once when it is final; one in passing is met again and again. */
function timesText({ times, firstAt, lastAt }: NonNullable<Row['problem']>): string {
  if (times === 1) return `once, at ${instant(firstAt)}`
  return `${times} times since ${instant(firstAt)}, last at ${instant(lastAt)}`
}

/** `Provisioning, at clone`; `Failed, at seed`; `Ready`. */
export function stateText({ phase, step, failedStep }: Row): string {
  const at = phase === 'Failed' ? failedStep : step
  return at === undefined ? phase : `${phase}, at ${at}`
}
