/** A table as Proxmox's own programs print one. Source: pve-common CLIFormatter.pm print_text_table. */
export function textTable(
  columns: readonly string[],
  rows: readonly Readonly<Record<string, unknown>>[],
): string {
  const cells = rows.map((row) =>
    columns.map((column) => (row[column] === undefined ? '' : String(row[column]))),
  )
  const widths = columns.map((column, index) =>
    Math.max(column.length, ...cells.map((line) => line[index]?.length ?? 0)),
  )
  const rule = ([left, line, between, right]: string) =>
    `${left}${widths.map((width) => line?.repeat(width + 2)).join(between)}${right}\n`
  const line = (texts: readonly string[]) =>
    `│ ${texts.map((text, index) => text.padEnd(widths[index] ?? 0)).join(' │ ')} │\n`
  return rule('┌─┬┐') + line(columns) + rule('╞═╪╡') + cells.map(line).join(rule('├─┼┤')) + rule('└─┴┘')
}
