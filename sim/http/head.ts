/** The head of a request as pveproxy reads it: names of headers in lower case, repeated ones joined. */
export type RequestHead = {
  method: string
  /** As on the request line: the path still escaped, with its query. */
  target: string
  protocol: 'HTTP/1.0' | 'HTTP/1.1'
  headers: Record<string, string>
}

const maxHeaderLines = 64
const maxHeaderBytes = 8 * 1024

/**
 * Whether pveproxy reads the head to its end: 63 lines and less than 8 KiB. Beyond that it gives no answer at all, the
 * connection just runs into its time-out. Source: captures 19, "73 header lines" and "a 9000 byte header".
 */
export function fitsLimits(lines: string[]): boolean {
  // The empty line that ends the head counts as one.
  const bytes = lines.reduce((sum, line) => sum + Buffer.byteLength(line), 0)
  return lines.length + 1 < maxHeaderLines && bytes < maxHeaderBytes
}

export type Target = { path: string; rawPath: string; query: string }

/** Splits a request target; an absolute URL counts by its path, as in a request to a proxy. */
export function readTarget(target: string): Target {
  const local = target.replace(/^https?:\/\/[^/]*/i, '')
  const mark = local.indexOf('?')
  const rawPath = mark < 0 ? local : local.slice(0, mark)
  return { rawPath, path: unescapeUri(rawPath), query: mark < 0 ? '' : local.slice(mark + 1) }
}

/** Undoes percent escapes byte by byte; what is no escape, or no UTF-8, stays or becomes a replacement character. */
export function unescapeUri(text: string): string {
  if (!text.includes('%')) return text
  const bytes = Buffer.from(text).toString('latin1')
  const plain = bytes.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
  return Buffer.from(plain, 'latin1').toString('utf8')
}

/** Media type and boundary of a Content-Type. Quotes around a boundary count as part of it, as in pveproxy. */
export function readContentType(value: string | undefined): { type?: string; boundary?: string } {
  if (value === undefined || value === '') return {}
  const [type = '', ...parameters] = value.split(/\s*[;,]\s*/)
  for (const parameter of parameters) {
    const boundary = /^\s*boundary\s*=\s*(\S+)\s*$/.exec(parameter)?.[1]
    if (boundary) return { type, boundary }
  }
  return { type }
}
