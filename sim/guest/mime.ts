/** One leaf of a MIME message: its type, headers in lower case, and its content with the transfer encoding undone. */
export type MimePart = { type: string; headers: Record<string, string>; content: Buffer }

const maxDepth = 10

/** Takes a MIME message apart, containers inside containers too. A message that is no container is its own only part. */
export function readMime(message: Buffer, depth = 0): MimePart[] {
  const text = message.toString('latin1')
  const blank = /\r?\n\r?\n/.exec(text)
  const headers = readHeaders(blank ? text.slice(0, blank.index) : text)
  const body = blank ? text.slice(blank.index + blank[0].length) : ''
  const [type = 'text/plain', ...parameters] = (headers['content-type'] ?? 'text/plain')
    .split(';')
    .map((part) => part.trim())
  const boundary = parameters.map((parameter) => /^boundary="?([^"]*)"?$/i.exec(parameter)?.[1]).find(Boolean)
  if (type.toLowerCase().startsWith('multipart/') && boundary && depth < maxDepth) {
    return splitAt(boundary, body).flatMap((part) => readMime(Buffer.from(part, 'latin1'), depth + 1))
  }
  return [{ type: type.toLowerCase(), headers, content: decode(body, headers['content-transfer-encoding']) }]
}

function readHeaders(text: string): Record<string, string> {
  const unfolded = text.replace(/\r?\n[ \t]+/g, ' ')
  const pairs = unfolded.split(/\r?\n/).map((line) => /^([^:\s]+):\s*(.*)$/.exec(line))
  return Object.fromEntries(
    pairs.filter((pair) => pair !== null).map(([, name = '', value = '']) => [name.toLowerCase(), value]),
  )
}

/** The pieces between the boundary lines; what stands before the first and after the closing one is not for reading. */
function splitAt(boundary: string, body: string): string[] {
  const parts: string[][] = []
  let current: string[] | undefined
  for (const line of body.split('\n')) {
    const bare = line.trimEnd()
    if (bare === `--${boundary}--`) break
    if (bare === `--${boundary}`) {
      current = []
      parts.push(current)
    } else current?.push(line)
  }
  return parts.map((lines) => lines.join('\n').replace(/\r$/, ''))
}

function decode(body: string, encoding = ''): Buffer {
  switch (encoding.toLowerCase()) {
    case 'base64':
      return Buffer.from(body, 'base64')
    case 'quoted-printable': {
      const joined = body.replace(/=\r?\n/g, '')
      return Buffer.from(
        joined.replace(/=([0-9A-F]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
        'latin1',
      )
    }
    default:
      return Buffer.from(body, 'latin1')
  }
}
