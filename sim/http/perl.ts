/** Where a sentence of pveproxy comes from: its file and line, which differ between the versions. Source: captures 02 and 08. */
const lines = {
  json: { 8: 917, 9: 934 },
  field: { 8: 1281, 9: 1325 },
  upload: { 8: 1317, 9: 1370 },
} as const

/** What Perl adds to the words of a `die` that do not end in a newline. */
export function diedAt(place: keyof typeof lines, version: 8 | 9): string {
  return ` at /usr/share/perl5/PVE/APIServer/AnyEvent.pm line ${lines[place][version]}.\n`
}
