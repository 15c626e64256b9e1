import { elsewhere, excluded, type Reason, reasons } from './coverage.ts'
import { recording, scenarios } from './recording.ts'

const compared = (version: 8 | 9, scenario: string) => {
  const { exchanges } = recording(version, scenario)
  const total = exchanges.filter(({ request, response }) => request && response).length
  const left = Object.values(excluded[`${version}/${scenario}`] ?? {}).flat().length
  return { total, compared: scenario in elsewhere ? 0 : total - left }
}

/** The page docs/conformance.md, made of the same table that the tests go by. */
export function conformancePage(): string {
  const names = [...new Set([...scenarios(8), ...scenarios(9)])].sort()
  const sum = { total: 0, compared: 0 }
  const cell = (version: 8 | 9, name: string): string => {
    if (!scenarios(version).includes(name)) return 'not recorded'
    const counted = compared(version, name)
    sum.total += counted.total
    sum.compared += counted.compared
    return name in elsewhere ? (elsewhere[name] ?? '') : `${counted.compared} of ${counted.total}`
  }
  const rows = names.map((name) => [name, cell(8, name), cell(9, name)])
  return `# How the simulator is held to the real thing

Answers of the real Proxmox VE API code, 8.4 and 9.2, were recorded (test/fixtures/captures, its ORIGIN says how). The tests build
the world of each recording, send the recorded requests at the recorded moments under a clock of their own, and compare status,
reason, message, errors, and the body: every key, the type of what belongs to the moment (times, process ids, digests, figures of
load and space) and the value of everything else, exit texts and logs of tasks included. How often qemu-img tells its progress is
not compared.

**${sum.compared} of ${sum.total}** exchanges are compared in \`conformance.test.ts\`; an exchange counts only then. The front is held
to the recordings of HTTP itself by \`http-*.test.ts\`, with and without sockets.

${table([['scenario', 'PVE 8', 'PVE 9'], ...rows])}

## What is not compared, and why

The tests also check that these do differ: an exchange that agrees may not stand here.

${reasonList()}
`
}

/** Columns of one width, as a formatter would have them. */
function table([head = [], ...rows]: string[][]): string {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)))
  const line = (row: string[]) =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n')
}

function reasonList(): string {
  return Object.entries(reasons)
    .map(([reason, text]) => {
      // The keys of the table are reasons by its type.
      const places = Object.entries(excluded).flatMap(([place, by]) => {
        const indexes = by[reason as Reason]
        return indexes ? [`${place} (${indexes.join(', ')})`] : []
      })
      return `- ${text}: ${places.join('; ')}`
    })
    .join('\n')
}
