import type { Letter } from '../lib/letter.ts'
import type { Judged } from './letter-desk.ts'
import { visible } from './visible.ts'

/** Letters of one cause: as much as fits on a line, however many there are. */
export type Group = {
  code: string
  count: number
  overtaken: number
  oldestAt: number
  newestAt: number
  /** Names and how often each; many names are rare, and only the first are kept. */
  zones: Map<string, number>
  nodes: Map<string, number>
  /** Of the newest. */
  reason: string
  example: Pick<Letter, 'uid' | 'messageId'>
}

const NAMES_KEPT = 50

export function createGroups(): { add(judged: Judged): void; list(): Group[] } {
  const groups = new Map<string, Group>()
  return {
    add({ letter, remedy }) {
      const { code, diedAt, problem, uid, messageId } = letter
      const group = groups.get(code) ?? blank(letter)
      groups.set(code, group)
      group.count += 1
      if (remedy.kind === 'overtaken') group.overtaken += 1
      group.oldestAt = Math.min(group.oldestAt, diedAt)
      if (diedAt >= group.newestAt) {
        group.newestAt = diedAt
        group.reason = visible(problem.reason ?? '', 500)
        group.example = { messageId, ...(uid === undefined ? {} : { uid }) }
      }
      note(group.zones, problem.zone)
      note(group.nodes, problem.node)
    },
    list: () => [...groups.values()].sort((a, b) => b.count - a.count || b.newestAt - a.newestAt),
  }
}

/** `pve1, pve2 and 3 more`, the most frequent first. */
export function namesText(names: ReadonlyMap<string, number>, shown = 2): string {
  const sorted = [...names].sort((a, b) => b[1] - a[1]).map(([name]) => visible(name, 40))
  const rest = sorted.length - shown
  return rest > 0 ? `${sorted.slice(0, shown).join(', ')} and ${rest} more` : sorted.join(', ')
}

function blank({ code, diedAt, messageId }: Letter): Group {
  const names = { zones: new Map<string, number>(), nodes: new Map<string, number>() }
  return {
    code,
    count: 0,
    overtaken: 0,
    oldestAt: diedAt,
    newestAt: diedAt,
    ...names,
    reason: '',
    example: { messageId },
  }
}

function note(names: Map<string, number>, name: string | undefined): void {
  if (name === undefined || (!names.has(name) && names.size >= NAMES_KEPT)) return
  names.set(name, (names.get(name) ?? 0) + 1)
}
