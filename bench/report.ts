import Table from 'cli-table3'

/** One number that is watched from run to run. Smaller is better, unless it says otherwise. */
export type Figure = {
  name: string
  value: number
  unit: string
  /** What it is to stay within. */
  aim?: number
  /** Share of itself by which it differs between two runs of the same code. */
  noise: number
  moreIsBetter?: true
}

type Cell = string | number

export type Sheet = { title: string; head: string[]; rows: Cell[][] }

/** What a part has found out: tables for people, figures to be compared with earlier ones, and what to know about them. */
export type Report = { sheets: Sheet[]; figures: Figure[]; notes?: string[] }

/** A part of the benchmarks, which stands alone. */
export type Part = {
  name: string
  about: string
  run(say: (line: string) => void): Promise<Report>
}

/** Of the virtual clock or of counting: the same at each run, but for the order in which equals come. */
export const EXACT = 0.02
/** Of the machine's clock, while others may use the machine too. */
export const TIMED = 0.35

export function render({ sheets, figures, notes = [] }: Report): string {
  const aimed = figures.filter(({ aim }) => aim !== undefined)
  const verdicts = aimed.map((figure) => [
    figure.name,
    `${shown(figure.value)} ${figure.unit}`.trim(),
    `${figure.moreIsBetter ? '≥' : '≤'} ${figure.aim}`,
    meets(figure) ? 'met' : 'MISSED',
  ])
  const all = [...sheets]
  if (verdicts.length > 0) all.push({ title: 'Aims', head: ['figure', 'value', 'aim', ''], rows: verdicts })
  return [...all.map(table), ...notes.map((note) => `  · ${note}`)].join('\n')
}

export function meets({ value, aim, moreIsBetter }: Figure): boolean {
  if (aim === undefined) return true
  return moreIsBetter ? value >= aim : value <= aim
}

function table({ title, head, rows }: Sheet): string {
  const numeric = head.map((_, column) => rows.some((row) => typeof row[column] === 'number'))
  const drawn = new Table({
    head,
    colAligns: numeric.map((isNumber) => (isNumber ? 'right' : 'left')),
    style: { head: [], border: [], compact: true },
  })
  for (const row of rows) drawn.push(row.map((cell) => (typeof cell === 'number' ? shown(cell) : cell)))
  return `\n${title}\n${drawn.toString()}`
}

/** Three digits that count, and no more noughts than it takes. */
export function shown(value: number): string {
  if (Number.isInteger(value)) return value.toLocaleString('en-US')
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en-US')
  return String(Number(value.toPrecision(3)))
}
