import type { Report, Reported } from '../functions/gc/event.ts'
import { counted } from '../lib/counted.ts'
import { duration } from './format.ts'
import { columns } from './table.ts'
import { visible } from './visible.ts'

/** A run of gc for a person: what it looked at, what is done, what waits, what to type. */
export function describeGc(report: Report): string {
  const { actions, noted, waiting, warnings, skipped, heldBack, dryRun, leftOff = {} } = report
  const at = Date.parse(report.startedAt)
  const age = (since: string) => duration(Math.max(0, at - Date.parse(since)))
  const blocks = [
    lookedText(report),
    block(
      dryRun ? 'a run now would:' : 'done:',
      actions.length === 0
        ? []
        : [
            columns(
              ['WHAT', 'ABOUT', 'DUE FOR', 'STATE'],
              actions.map((one) => lineOf(one, age(one.since))),
            ),
          ],
    ),
    block(
      dryRun ? 'seen for the first time, to be noted by a run:' : 'seen for the first time, noted:',
      noted.map((key) => visible(subjectText(key))),
    ),
    block(
      'known, and waiting:',
      waiting.map(({ key, since, why }) => visible(`${subjectText(key)}, for ${age(since)}: ${why}`)),
    ),
    block('not looked at:', skippedLines(skipped)),
    block(
      'to type:',
      warnings.map(({ code, text, hint }) => `${code}: ${visible(text)}\n  ${visible(hint)}`),
    ),
  ]
  const left = Object.entries(leftOff).map(([what, count]) => `${what}: ${count} more had no room`)
  const kinds = Object.entries(heldBack).map(([kind, count]) => `${kind}: ${count}`)
  const held = block(
    dryRun
      ? 'due, and more than one run may start (limits.maxDeletions):'
      : 'due, and left for the next runs, since one may start only so many (limits.maxDeletions):',
    kinds,
  )
  return [...blocks.flat(), ...held, ...left].join('\n\n')
}

const block = (title: string, lines: readonly string[]): string[] =>
  lines.length === 0
    ? []
    : [[title, ...lines.flatMap((line) => line.split('\n')).map((line) => `  ${line}`)].join('\n')]

/** The same reason in several places is told once. */
function skippedLines(skipped: Report['skipped']): string[] {
  const alike = Map.groupBy(
    skipped,
    ({ reason, hint = '' }) => `${visible(reason)}${hint === '' ? '' : `\n  ${visible(hint)}`}`,
  )
  return [...alike].map(([text, places]) => {
    const where = places.map(({ cluster, node, storage }) =>
      [cluster, node, storage].filter(Boolean).join('/'),
    )
    return `${where.join(', ')}: ${text}`
  })
}

function lookedText({ looked }: Report): string {
  const { clusters, silentNodes, vms, configs, seeds, disks, rows, claims, suspects } = looked
  const silent = silentNodes === 0 ? '' : `, ${silentNodes} of their nodes silent`
  return (
    `clusters: ${clusters}${silent}; in them ${counted(vms, 'VM')} (${configs} looked into), ${counted(seeds, 'seed')}, ${counted(disks, 'disk')}\n` +
    `tables: ${counted(rows, 'row')}, ${counted(claims, 'claim')}, ${counted(suspects, 'suspect')}`
  )
}

function lineOf(action: Reported, age: string): string[] {
  const state = action.why === undefined ? action.state : `${action.state}: ${action.why}`
  return [action.kind, aboutText(action), age, state]
}

function aboutText(action: Reported): string {
  switch (action.kind) {
    case 'delete orphan':
      return `VM ${action.vmid} of ${action.uid} on ${action.node} (${action.cluster})`
    case 'expire':
      return action.uid
    case 'kick':
      return `${action.uid}, at ${action.step}`
    case 'sweep seed':
      return `${action.volume} on ${action.shared ? action.cluster : action.node}`
    case 'sweep disk':
    case 'show disk':
      return `${action.volume} on ${action.node}`
    case 'free claim':
      return `${action.partition} ${action.sort} of ${action.owner}`
  }
}

/** What a suspect is about, out of its key. */
function subjectText(key: string): string {
  const [kind, cluster, third = '', ...rest] = key.split('#')
  const where = third === '*' ? cluster : `${third} (${cluster})`
  if (kind === 'vm') return `VM ${third} of ${rest.join('#')} (${cluster})`
  if (kind === 'lock') return `VM ${third} (${cluster}), locked (${rest.join('#')})`
  if (kind === 'seed' || kind === 'disk') return `${kind} ${rest.join('#')} on ${where}`
  return key.replace('#', ' ')
}
