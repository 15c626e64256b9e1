import Table from 'cli-table3'
import { visible } from './visible.ts'

/** Columns without lines, as a shell's own tools print them. */
export function columns(head: string[], rows: string[][]): string {
  const grid = new Table({
    head,
    style: { head: [], border: [], compact: true, 'padding-left': 0, 'padding-right': 2 },
    chars: noLines,
  })
  // A line feed within a cell would pass for a row.
  grid.push(...rows.map((cells) => cells.map((cell) => visible(cell))))
  return grid
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
}

const names = ['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left'] as const
const more = ['bottom-right', 'left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid', 'middle'] as const
const noLines = Object.fromEntries([...names, ...more].map((name) => [name, '']))
