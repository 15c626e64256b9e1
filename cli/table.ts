import stringWidth from 'string-width'
import { visible } from './visible.ts'

/** Columns without lines, as a shell's own tools print them. */
export function columns(head: string[], rows: string[][]): string {
  // A line feed within a cell would pass for a row.
  const lines = [head, ...rows.map((cells) => cells.map((cell) => visible(cell)))]
  const widths = head.map((_, column) => widest(lines.map((cells) => cells[column] ?? '')))
  const padded = (cell: string, column: number) =>
    cell + ' '.repeat((widths[column] ?? 0) - stringWidth(cell))
  return lines.map((cells) => cells.map(padded).join('  ').trimEnd()).join('\n')
}

const widest = (cells: string[]) => cells.reduce((width, cell) => Math.max(width, stringWidth(cell)), 0)
