import type { Row } from '../lib/record.ts'
import { describeRow } from './describe-row.ts'
import { duration, instant } from './format.ts'
import type { Judged } from './letter-desk.ts'
import { visible } from './visible.ts'

/** A dead letter for a person: what went wrong, what to do, what happened before. The body of a published event is not in it. */
export function describeLetter({ letter, remedy }: Judged, row: Row | undefined, now: number): string {
  const { code, uid, messageId, side, turn, step, diedAt, problem, kind, body, attributes } = letter
  const { reason, hint, zone, cluster, node, vmid, upid } = problem
  const lines: [string, string | undefined][] = [
    ['code', code],
    ['uid', uid],
    ['message', `${messageId} (dead letters of the ${side} queue)`],
    ['died', `${instant(diedAt)} (${duration(now - diedAt)} ago)`],
    ['step', step],
    ['turn', turn === undefined ? undefined : String(turn)],
    [
      'where',
      [zone, cluster, node, vmid === undefined ? undefined : `VM ${vmid}`].filter(Boolean).join(', ') ||
        undefined,
    ],
    ['task', upid],
    ['reason', reason],
    ['hint', hint],
    ['state', stateOf(remedy)],
  ]
  const told = lines.flatMap(([label, value]) =>
    value === undefined ? [] : [`${label.padEnd(11)} ${visible(value)}`],
  )
  const others = Object.entries(attributes).filter(([name]) => !shown.has(name))
  return [
    ...told,
    ...others.map(([name, value]) => `${visible(name).padEnd(11)} ${visible(value, 500)}`),
    `${'body'.padEnd(11)} ${kind === 'event' ? hidden(messageId, body) : visible(body)}`,
    ...todo({ letter, remedy }),
    ...(row ? ['', `The row of ${row.uid}, as it stands now:`, ...indented(describeRow(row, now))] : []),
  ].join('\n')
}

const shown = new Set(['code', 'uid', 'turn', 'step', 'failedAt', 'problem'])
const indented = (text: string) => text.split('\n').map((line) => (line === '' ? '' : `  ${line}`))

const hidden = (messageId: string, body: string) =>
  `${Buffer.byteLength(body)} bytes as published, which may hold a secret: egress dlq show ${messageId} --raw`

function stateOf(remedy: Judged['remedy']): string {
  if (remedy.kind === 'again') return 'can be sent again as it is, or mended'
  return remedy.kind === 'resume' ? `can be ${remedy.why}` : `${remedy.kind}: ${remedy.why}`
}

/** The exact lines to type next. */
function todo({ letter, remedy }: Judged): string[] {
  const { kind, uid, messageId } = letter
  const id = kind === 'event' || uid === undefined ? messageId : uid
  const drop = `egress dlq drop ${id} --reason <why>`
  if (remedy.kind === 'overtaken') return ['', `${'drop it'.padEnd(11)} ${drop}`]
  if (remedy.kind === 'pending') return []
  const mended = kind === 'event' ? ['', `  or mended  egress dlq redrive ${id} --body <file>`] : []
  return [
    '',
    `${'then'.padEnd(11)} egress dlq redrive ${id}`,
    ...mended.slice(1),
    `${'or'.padEnd(11)} ${drop}`,
  ]
}
