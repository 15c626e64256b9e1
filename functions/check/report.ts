import type { Counts, Finding, FindingCode, Level, ProxyCounts, Report, Summary } from './event.ts'
import type { ProxiesOfNode } from './proxies.ts'

/** What a round found of a cluster, and of the proxies on each of its nodes. */
export type Found = { findings: readonly Finding[]; proxies: readonly ProxiesOfNode[] }

type Times = { startedAt: number; endedAt: number }

/** An item of the table holds 400 KB, and a finding is a few hundred bytes. */
const MOST_FINDINGS = 300
const MOST_SILENT = 1000
const MOST_CHARACTERS = 500

export function reportOf(
  cluster: string,
  { startedAt, endedAt }: Times,
  { findings, proxies }: Found,
): Report {
  const all = [...findings, ...proxies.flatMap((one) => one.findings)].map(shortened)
  const kept = worstFirst(all).slice(0, MOST_FINDINGS)
  const silent = proxies.flatMap((one) => Object.entries(one.silent)).slice(0, MOST_SILENT)
  const cursors = proxies.flatMap(({ node, cursor }) =>
    cursor === undefined ? [] : [[node, cursor] as const],
  )
  return {
    cluster,
    startedAt: new Date(startedAt).toISOString(),
    ms: endedAt - startedAt,
    counts: countLevels(all),
    proxies: sum(proxies.map(({ counts }) => counts)),
    // In the order in which they were found, whatever was left off.
    findings: all.filter((one) => kept.includes(one)),
    ...(all.length > kept.length ? { leftOff: all.length - kept.length } : {}),
    silent: Object.fromEntries(silent),
    cursors: Object.fromEntries(cursors),
  }
}

export function summaryOf({ startedAt, endedAt }: Times, reports: readonly Report[]): Summary {
  return {
    startedAt: new Date(startedAt).toISOString(),
    ms: endedAt - startedAt,
    clusters: reports.map(({ cluster }) => cluster),
    counts: {
      ok: total(reports, ({ counts }) => counts.ok),
      warning: total(reports, ({ counts }) => counts.warning),
      failure: total(reports, ({ counts }) => counts.failure),
    },
    proxies: sum(reports.map(({ proxies }) => proxies)),
  }
}

/** The report as a line of the log, which metrics are made from: numbers, and what is wrong by its code. */
export function lineOf({ cluster, ms, counts, proxies, findings }: Report) {
  const codes = findings.filter(({ level }) => level !== 'ok').map(({ code }) => code)
  const byCode = Object.fromEntries(
    [...Map.groupBy(codes, (code: FindingCode) => code)].map(([code, same]) => [code, same.length]),
  )
  return { cluster, ms, ...counts, proxies, codes: byCode }
}

const RANK: Readonly<Record<Level, number>> = { failure: 0, warning: 1, ok: 2 }
const worstFirst = (findings: readonly Finding[]) =>
  [...findings].sort((a, b) => RANK[a.level] - RANK[b.level])

function countLevels(findings: readonly Finding[]): Counts {
  const count = (level: Level) => findings.filter((one) => one.level === level).length
  return { ok: count('ok'), warning: count('warning'), failure: count('failure') }
}

function sum(counts: readonly ProxyCounts[]): ProxyCounts {
  const all = (name: keyof ProxyCounts) => counts.reduce((so, one) => so + one[name], 0)
  return {
    ready: all('ready'),
    fine: all('fine'),
    drifted: all('drifted'),
    unknown: all('unknown'),
    unseen: all('unseen'),
    resumed: all('resumed'),
  }
}

const total = (reports: readonly Report[], of: (report: Report) => number) =>
  reports.reduce((so, report) => so + of(report), 0)

/** What Proxmox says is quoted, and may be long. */
const shortened = (finding: Finding): Finding =>
  finding.text.length <= MOST_CHARACTERS
    ? finding
    : { ...finding, text: `${finding.text.slice(0, MOST_CHARACTERS - 1)}…` }
