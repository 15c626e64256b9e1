import { describe, expect, it } from 'vitest'
import { type Finding, Report } from '../../../functions/check/event.ts'
import type { ProxiesOfNode } from '../../../functions/check/proxies.ts'
import { lineOf, reportOf, summaryOf } from '../../../functions/check/report.ts'
import { NOW } from '../../lib/a-row.ts'

const times = { startedAt: NOW, endedAt: NOW + 1500 }
const finding = (level: Finding['level'], code: Finding['code'], text = 'x'): Finding => ({
  level,
  code,
  text,
  target: 'proxy',
  where: 'a',
})
const proxies = (changes: Partial<ProxiesOfNode> = {}): ProxiesOfNode => ({
  node: 'pve1',
  findings: [],
  counts: { ready: 3, fine: 1, drifted: 1, unknown: 1, unseen: 0, resumed: 1 },
  silent: {},
  ...changes,
})

describe('the report of a round', () => {
  it('counts what was found and what became of proxies, and is what its schema says', () => {
    const report = reportOf('lab', times, {
      findings: [finding('ok', 'Fine'), finding('failure', 'NoQuorum')],
      proxies: [
        proxies({ findings: [finding('warning', 'Stopped')], silent: { b: 2 } }),
        proxies({ node: 'pve2', cursor: 'c', silent: { d: 1 } }),
      ],
    })
    expect(Report.parse(report)).toEqual(report)
    expect(report).toMatchObject({
      startedAt: '2026-01-01T00:00:00.000Z',
      ms: 1500,
      counts: { ok: 1, warning: 1, failure: 1 },
      proxies: { ready: 6, fine: 2, drifted: 2, unknown: 2, resumed: 2 },
      silent: { b: 2, d: 1 },
      cursors: { pve2: 'c' },
    })
    expect(lineOf(report)).toEqual({
      cluster: 'lab',
      ms: 1500,
      ok: 1,
      warning: 1,
      failure: 1,
      proxies: report.proxies,
      codes: { NoQuorum: 1, Stopped: 1 },
    })
    expect(summaryOf(times, [report, { ...report, cluster: 'other' }])).toMatchObject({
      clusters: ['lab', 'other'],
      counts: { ok: 2, warning: 2, failure: 2 },
      proxies: { ready: 12 },
    })
  })

  it('keeps what is worst where there is too much, in the order in which it was found, and still counts all', () => {
    const many = Array.from({ length: 5000 }, () => finding('warning', 'Unknown', 'y'.repeat(2000)))
    const found = { findings: [finding('ok', 'Fine'), ...many, finding('failure', 'NoQuorum')], proxies: [] }
    const report = reportOf('lab', times, found)
    expect(report.findings).toHaveLength(300)
    expect(report.findings.at(-1)?.code).toBe('NoQuorum')
    expect(report.leftOff).toBe(4702)
    expect(report.counts).toEqual({ ok: 1, warning: 5000, failure: 1 })
  })

  it('fits an item of the table, however many proxies there are', () => {
    const silent = Object.fromEntries(
      Array.from({ length: 10_000 }, (_, index) => [`${index}`.padStart(63, 'p'), 9]),
    )
    const many = Array.from({ length: 10_000 }, () => finding('warning', 'Silent', 'y'.repeat(2000)))
    const report = reportOf('lab', times, { findings: many, proxies: [proxies({ silent })] })
    expect(Buffer.byteLength(JSON.stringify(report))).toBeLessThan(400_000)
  })
})
