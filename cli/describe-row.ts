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
    ['proxy', endpoint],
    ['VM', place && `${place.vmid} on ${place.node} (${place.cluster})`],
    ['zone', spec && `${spec.zone}, ${spec.image}`],
    [
      'size',
      spec &&
        `${spec.size.cores} core${spec.size.cores === 1 ? '' : 's'}, ${spec.size.memoryMiB} MiB, ${spec.size.diskGiB} GiB`,
    ],
    ['allowed', spec?.proxy.allow.join(', ')],
    [
      'labels',
      spec?.labels &&
        Object.entries(spec.labels)
          .map((pair) => pair.join('='))
          .join(', '),
    ],
    ['generation', String(row.generation)],
    ['asked for', `${instant(row.requestedAt)} (${duration(now - row.requestedAt)} ago)`],
    ['ready', readyAt === undefined ? undefined : `after ${duration(readyAt - row.requestedAt)}`],
    ['expires', expiresAt === undefined ? undefined : instant(expiresAt)],
    ['problem', problem && `${problem.code}: ${problem.reason}`],
    ['', problem && `${problem.times} times since ${instant(problem.firstAt)}`],
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

/** `Provisioning, at clone`; `Failed, at seed`; `Ready`. */
export function stateText({ phase, step, failedStep }: Row): string {
  const at = phase === 'Failed' ? failedStep : step
  return at === undefined ? phase : `${phase}, at ${at}`
}
