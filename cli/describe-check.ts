import type { Counts, Finding, ProxyCounts, Round } from '../functions/check/event.ts'
import { counted } from '../lib/counted.ts'
import { columns } from './table.ts'
import { visible } from './visible.ts'

/** A round for a person: a line for each thing that was looked at, those that are well in one, then what to type. */
export function describeRound({ reports, summary }: Round, { all }: { all: boolean }): string {
  const blocks = reports.map(({ cluster, findings, leftOff }) => {
    const lines = inOrder(findings).flatMap(([title, about]) => linesOf(title, about, all))
    const rest =
      leftOff === undefined ? [] : [`${counted(leftOff, 'more finding', 'more findings')} had no room`]
    return [`${cluster}:`, columns(['WHERE', 'STATE', 'WHAT'], lines), ...rest].join('\n')
  })
  return [...blocks, ...todo(reports.flatMap(({ findings }) => findings)), proxyText(summary.proxies)].join(
    '\n\n',
  )
}

/** `2 failures, 1 warning`. */
export function countsText({ failure, warning }: Pick<Counts, 'failure' | 'warning'>): string {
  const parts = [
    ...(failure > 0 ? [counted(failure, 'failure')] : []),
    ...(warning > 0 ? [counted(warning, 'warning')] : []),
  ]
  return parts.join(', ') || 'nothing wrong'
}

/** By node, then the proxies. What is of the whole cluster comes first. */
const ORDER: readonly Finding['target'][] = ['cluster', 'token', 'endpoint', 'node', 'proxies', 'proxy']

function inOrder(findings: readonly Finding[]): [title: string, about: Finding[]][] {
  const nodes = [...new Set(findings.map(({ node = '' }) => node))].sort()
  const rank = ({ target, node = '' }: Finding) => {
    const isProxy = target === 'proxy'
    const place = ['cluster', 'token'].includes(target) ? 0 : 1 + nodes.indexOf(node)
    return (isProxy ? 1e6 : 0) + place * 10 + ORDER.indexOf(target)
  }
  const sorted = [...findings].sort((a, b) => rank(a) - rank(b))
  return [...Map.groupBy(sorted, titleOf)]
}

function titleOf({ target, where, node }: Finding): string {
  if (target === 'proxies') return `proxies on ${where}`
  if (target === 'proxy') return `proxy ${where} on ${node ?? '?'}`
  return `${target} ${where}`
}

function linesOf(title: string, about: readonly Finding[], all: boolean): string[][] {
  const wrong = about.filter(({ level }) => level !== 'ok')
  const well = about.filter(({ code }) => code === 'Fine')
  const notes = about.filter(({ level, code }) => level === 'ok' && code !== 'Fine')
  const unseen = notes.length === 0 || all ? '' : ` (${notes.length} not seen: --all)`
  const shown = all
    ? [...well, ...wrong, ...notes]
    : wrong.length > 0
      ? wrong
      : well.length > 0
        ? well
        : notes
  return shown.map((one, index) => [
    index === 0 ? title : '',
    one.level === 'ok' ? (one.code === 'Fine' ? 'ok' : '-') : one.level,
    `${one.text}${one.done === undefined ? '' : ` [${one.done}]`}${index === 0 && one.code === 'Fine' ? unseen : ''}`,
  ])
}

/** What a person has to do, the worst first; what the round has seen to itself is not among it. */
function todo(findings: readonly Finding[]): string[] {
  const open = findings.filter(({ level, line }) => level !== 'ok' && line !== undefined)
  if (open.length === 0) return []
  const lines = [...open]
    .sort((a, b) => Number(a.level === 'warning') - Number(b.level === 'warning'))
    .map((one) => `  ${visible(titleOf(one))}: ${one.code}\n    ${visible(one.line ?? '')}`)
  return [['to type:', ...lines].join('\n')]
}

function proxyText({ ready, fine, drifted, unknown, unseen, resumed }: ProxyCounts): string {
  const rest = Object.entries({ drifted, unknown, 'not looked at': unseen, 'taken up again': resumed })
    .filter(([, number]) => number > 0)
    .map(([what, number]) => `, ${number} ${what}`)
  return `proxies: ${ready} ready, ${fine} fine${rest.join('')}`
}
