import { readFileSync } from 'node:fs'
import type { EngineResult, SimRequest } from '../../../sim/types.ts'

/** One recorded exchange or event, as the files under test/fixtures/captures hold them. */
export type Recorded = {
  label?: string
  event?: string
  took?: number
  request?: { method: string; path: string; headers: Record<string, string> | string[]; body: unknown }
  response?: {
    status?: number
    reason?: string
    headers?: Record<string, string>
    body?: unknown
    raw?: string
    error?: string
  }
  [other: string]: unknown
}

/** The exchanges of a scenario, with an event's fields beside them. */
export function recording(version: 8 | 9, scenario: string): Recorded[] {
  const file = new URL(`../../fixtures/captures/${version}/${scenario}.json`, import.meta.url)
  return JSON.parse(readFileSync(file, 'utf8')).exchanges
}

/** A recorded answer whole: with its head taken apart when it was kept as raw text. */
export function recordedAnswer({ response = {} }: Recorded) {
  if (response.raw !== undefined) return parseAnswer(response.raw)
  const { status = 0, reason = '', headers = {}, body } = response
  return { status, reason, headers, body: typeof body === 'string' ? body : JSON.stringify(body) }
}

export type Answer = { status: number; reason: string; headers: Record<string, string>; body: string }

/** Takes an answer as it came over the wire apart. A header that came twice counts by its last value. */
export function parseAnswer(raw: string): Answer {
  const end = raw.indexOf('\r\n\r\n')
  const [statusLine = '', ...lines] = raw.slice(0, end).split('\r\n')
  const [, status = '0', reason = ''] = /^HTTP\/1\.[01] (\d{3}) (.*)$/.exec(statusLine) ?? []
  const headers = Object.fromEntries(lines.map((line) => line.split(/: (.*)/).slice(0, 2)))
  return { status: Number(status), reason, headers, body: raw.slice(end + 4) }
}

/** What the engine said when this was recorded: the answer without what pveproxy makes of it. */
export function engineSaid(recorded: Recorded): EngineResult {
  const { status, reason, headers, body } = recordedAnswer(recorded)
  if (!headers['Content-Type']) return { status, message: reason, emptyBody: true }
  // A body that was shortened for the recording stands for some answer of that status.
  const parsed: unknown = typeof body === 'string' && body.startsWith('{') ? JSON.parse(body) : { data: body }
  return { status, ...(parsed as Omit<EngineResult, 'status'>) } // as JSON.parse knows no types
}

/** Whether pveproxy itself made the answer, without asking anyone behind it. */
export function isMadeByFront(recorded: Recorded): boolean {
  const { status, headers } = recordedAnswer(recorded)
  return !headers['Content-Type'] && status !== 401 && status !== 403
}

/** The headers that are facts of the exchange: without dates, and without a length that a shortened body cannot have. */
export function comparableHeaders(answer: Answer, recorded: Recorded): Record<string, string> {
  const { Date: date, Expires: expires, ...headers } = answer.headers
  const { headers: wanted, body } = recordedAnswer(recorded)
  const isShortened = Buffer.byteLength(body) !== Number(wanted['Content-Length'] ?? 0)
  if (isShortened) delete headers['Content-Length']
  return headers
}

/** The request as bytes and fields. Placeholders like `<600000 x>` and `<374784 bytes>` are filled in. */
export function recordedRequest(recorded: Recorded): SimRequest {
  if (!recorded.request) throw new Error(`no request in ${recorded.label}`)
  const { method, path, body } = recorded.request
  const headers = headersOf(recorded.request.headers)
  const boundary = /boundary="?([^"]+)"?$/.exec(headers['content-type'] ?? '')?.[1] ?? ''
  const bytes = Array.isArray(body) ? multipartBody(body, boundary) : Buffer.from(fill(String(body ?? '')))
  return { method, path, headers, ...(bytes.length > 0 && { body: bytes }) }
}

function headersOf(recorded: Record<string, string> | string[]): Record<string, string> {
  const pairs = Array.isArray(recorded)
    ? recorded.filter((line) => line !== '').map((line) => line.split(/: (.*)/).slice(0, 2))
    : Object.entries(recorded)
  return Object.fromEntries(pairs.map(([name = '', value = '']) => [name.toLowerCase(), value]))
}

export type Part = { name: string; value: string; filename?: string | null; ctype?: string | null }

/** A multipart body as the recording client wrote it. */
export function multipartBody(
  parts: Part[],
  boundary: string,
  style: { lowerCase?: boolean; typeFirst?: boolean } = {},
): Buffer {
  const pieces = parts.flatMap(({ name, value, filename, ctype }) => {
    const file = filename ? `; filename="${filename}"` : ''
    const lines = [`Content-Disposition: form-data; name="${name}"${file}`]
    if (ctype) lines.push(`Content-Type: ${ctype}`)
    if (style.typeFirst) lines.reverse()
    const head = lines.join('\r\n')
    return [
      Buffer.from(
        `--${boundary}\r\n${style.lowerCase ? head.replace(/^[\w-]+:/gm, (word) => word.toLowerCase()) : head}\r\n\r\n`,
      ),
      fileBytes(value) ?? Buffer.from(value),
      Buffer.from('\r\n'),
    ]
  })
  return Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)])
}

function fileBytes(value: string): Buffer | undefined {
  const length = /^<(\d+) bytes>$/.exec(value)?.[1]
  return length === undefined ? undefined : pattern.subarray(0, Number(length))
}

/** All byte values, line ends among them, as in an image. */
const pattern = Buffer.from(Array.from({ length: 400_000 }, (_, i) => (i * 7 + (i >> 8)) & 0xff))

function fill(text: string): string {
  return text.replace(/<(\d+) (\w)>/g, (_, count: string, letter: string) => letter.repeat(Number(count)))
}
