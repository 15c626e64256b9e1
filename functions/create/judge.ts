import type { Config } from '../../lib/config.ts'
import { type BlankRow, firstRow, type Row, sideOf } from '../../lib/record.ts'
import type { Ruling } from '../../lib/ruling.ts'
import { hashSpec } from '../../lib/spec.ts'
import { fullSpec } from '../../lib/wish.ts'
import type { ProxyRequested } from './event.ts'

/** What a request does to its row: makes it, replaces it, or nothing. */
export function judge(event: ProxyRequested, row: Row | BlankRow, now: number, config: Config): Ruling {
  const specHash = hashSpec(event.name, event.spec)
  if (row.phase === undefined || (row.phase === 'Deleted' && isPast(row, now))) {
    return {
      kind: 'next',
      reason: 'new',
      ...wish(event, specHash, { ...firstRow(row, 'present', now), step: 'reserve' }, now, config),
    }
  }
  if (row.wish === 'absent') return { kind: 'drop', reason: 'its deletion was asked for already' }
  if (event.generation < row.generation) {
    return { kind: 'drop', reason: `generation ${event.generation} is behind ${row.generation}` }
  }
  if (event.generation > row.generation) {
    return {
      kind: 'next',
      reason: `replaces generation ${row.generation}`,
      ...wish(event, specHash, replaced(row), now, config),
    }
  }
  if (specHash === row.specHash) return { kind: 'drop', reason: 'duplicate' }
  return {
    kind: 'bury',
    code: 'GenerationReused',
    reason: `generation ${event.generation} of ${event.uid} was asked for before, with another name or spec`,
    hint: `to change a proxy, publish it with generation ${row.generation + 1}`,
  }
}

function wish(event: ProxyRequested, specHash: string, row: Row, now: number, config: Config) {
  const spec = fullSpec(event.spec, config)
  const { userData } = event.spec
  const expiry = spec.ttlSeconds === undefined ? {} : { expiresAt: now + spec.ttlSeconds * 1000 }
  const { expiresAt: _, ...rest } = row
  const wished = {
    ...rest,
    ...expiry,
    generation: event.generation,
    name: event.name,
    spec,
    specHash,
    requestedAt: now,
  }
  return { row: wished, ...(userData === undefined ? {} : { userData }) }
}

/** The old VM and seed go first; `release` turns back to `reserve`. What is already going, goes on. */
function replaced(row: Row): Row {
  const { problem: _, failedStep, address: __, endpoint: ___, readyAt: ____, ...rest } = row
  const leaving = row.step !== undefined && row.step !== 'report' && sideOf(row.step) === 'delete'
  const holds = row.place !== undefined || row.seed !== undefined
  const step = leaving && row.step ? row.step : holds ? 'stop' : 'reserve'
  return { ...rest, phase: 'Provisioning', step, lookedAgain: 0, probed: 0 }
}

const isPast = ({ purgeAt }: Row, now: number) => purgeAt !== undefined && purgeAt * 1000 < now
