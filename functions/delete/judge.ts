import { type BlankRow, firstRow, type Row } from '../../lib/record.ts'
import { type Ruling, restarted } from '../../lib/ruling.ts'
import type { Orphan, ProxyDeletionRequested } from './event.ts'

/** What a wish for absence does to its row: even a request that comes later finds it gone. */
export function judge(event: ProxyDeletionRequested | Orphan, row: Row | BlankRow, now: number): Ruling {
  if (event.type === 'Orphan') return judgeOrphan(event, row, now)
  if (row.phase === undefined) {
    return {
      kind: 'next',
      reason: 'deleted before it was asked for',
      row: { ...firstRow(row, 'absent', now), step: 'release' },
    }
  }
  if (row.phase === 'Deleted') return { kind: 'drop', reason: 'deleted already' }
  if (row.wish === 'absent') return again(row)
  const { problem: _, failedStep: __, ...rest } = row
  const step = row.place || row.seed !== undefined ? 'stop' : 'release'
  return { kind: 'next', reason: 'to be deleted', row: { ...rest, wish: 'absent', phase: 'Deleting', step } }
}

/** A VM that bears our mark and belongs to no row gets a row of its own, and goes the way of every VM. */
function judgeOrphan({ cluster, vmid, uid }: Orphan, row: Row | BlankRow, now: number): Ruling {
  if (row.phase !== undefined && row.phase !== 'Deleted') return again(row)
  // The node is found by looking; the template and the storage are in the VM's own configuration.
  const place = { cluster, node: '', vmid, template: 0, storage: '' }
  return {
    kind: 'next',
    reason: 'orphan',
    row: { ...firstRow(row, 'absent', now), orphanOf: uid, step: 'stop', place },
  }
}

function again(row: Row): Ruling {
  if (row.phase !== 'Failed' || !row.failedStep) return { kind: 'drop', reason: 'being deleted already' }
  return { kind: 'next', reason: 'redriven', row: restarted(row, row.failedStep) }
}
