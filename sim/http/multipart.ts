import type { Params } from './form.ts'
import { diedAt } from './perl.ts'

/** What an upload has become after a read: it wants more, is complete, or failed with pveproxy's words. */
export type UploadState =
  | { kind: 'more' }
  | { kind: 'complete'; params: Params; filename: string; bytes: Uint8Array }
  | { kind: 'failed'; message: string }

export type UploadReader = (chunk: Uint8Array) => UploadState

type Stage = 'preamble' | 'fields' | 'file'

/** The fields pveproxy knows, in the only order in which it finds them. */
const knownFields = ['content', 'checksum-algorithm', 'checksum'] as const

/**
 * Reads a multipart body piece by piece, with the limits of pveproxy's reader: it looks at what has arrived, never back.
 * The known fields come first and in order; the first part with a file name must be called `filename` and is the file up
 * to the closing boundary, other parts and all. Where a read ends inside the head of the file part, the rest of that head
 * becomes the start of the file. Source: captures 08; proxmox-facts 8.
 */
export function createUploadReader(options: {
  boundary: string
  /** Content-Length: a body that has been read so far without a closing boundary has failed. */
  sizeBytes: number
  params: Params
  version: 8 | 9
}): UploadReader {
  const { version } = options
  const params: Params = { ...options.params }
  const delimiter = new RegExp(`--${escapeRegExp(options.boundary)}\\r?\\n`)
  const closing = new RegExp(`(?:\\r?\\n)?--${escapeRegExp(options.boundary)}--`)
  // Long enough that no closing boundary can be cut in two by what is written out early.
  const holdBack = options.boundary.length + 8
  const file: string[] = []
  let stage: Stage = 'preamble'
  // One character a byte, so that positions are byte positions.
  let pending = ''
  let received = 0

  function takeField(name: string): string | undefined {
    const head = delimiter.exec(pending)
    const disposition = pending.indexOf(dispositionHeader, head?.[0].length)
    if (head?.index !== 0 || disposition < 0) return undefined
    const typeStart = disposition + dispositionHeader.length
    const nameStart = pending.indexOf(`; name="${name}"`, typeStart)
    if (nameStart < 0) return undefined
    const rest = pending.slice(nameStart + `; name="${name}"`.length)
    if (!delimiter.test(rest)) return undefined
    const wrong = wrongDisposition(pending.slice(typeStart, nameStart))
    if (wrong) return wrong
    const data = afterBlankLine(rest)
    const end = delimiter.exec(data)
    if (end) params[name] = data.slice(0, end.index).trim()
    pending = end ? data.slice(end.index) : data
    return undefined
  }

  function takeFileHead(): string | undefined {
    const head = delimiter.exec(pending)
    const start = head?.[0].length ?? 0
    if (head?.index !== 0 || !pending.startsWith(dispositionHeader, start)) return undefined
    const from = start + dispositionHeader.length
    const found = /^(.*?); name="(.*?)"; filename="([^"]+)"/s.exec(pending.slice(from, from + longestHead))
    if (!found) return undefined
    const [line, type = '', field = '', filename = ''] = found
    const wrong = wrongDisposition(type)
    if (wrong) return wrong
    if (field !== 'filename') {
      return `wrong field name '${field}' for file upload, expected 'filename'${diedAt('field', version)}`
    }
    params.filename = Buffer.from(filename, 'latin1').toString('utf8').trim()
    pending = afterBlankLine(pending.slice(from + line.length))
    stage = 'file'
    return undefined
  }

  function takeFields(): string | undefined {
    for (const name of knownFields) {
      const failure = takeField(name)
      if (failure) return failure
    }
    return takeFileHead()
  }

  /** Moves what surely belongs to the file out of the way. True at the closing boundary. */
  function takeFile(): boolean {
    const end = closing.exec(pending)
    if (end) {
      file.push(pending.slice(0, end.index))
      return true
    }
    const length = pending.length - holdBack
    if (length > 0) {
      file.push(pending.slice(0, length))
      pending = pending.slice(length)
    }
    return false
  }

  return (chunk) => {
    received += chunk.length
    pending += Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString('latin1')
    if (stage === 'preamble') {
      const start = pending.search(delimiter)
      if (start >= 0) {
        pending = pending.slice(start)
        stage = 'fields'
      }
    }
    if (stage === 'fields') {
      const failure = takeFields()
      if (failure) return { kind: 'failed', message: failure }
    }
    if (stage === 'file' && takeFile()) {
      const bytes = Buffer.from(file.join(''), 'latin1')
      return { kind: 'complete', params, filename: String(params.filename), bytes }
    }
    if (received >= options.sizeBytes)
      return { kind: 'failed', message: `upload failed${diedAt('upload', version)}` }
    return { kind: 'more' }
  }
}

const dispositionHeader = 'Content-Disposition: '
/** pveproxy looks through all that is there; in a file that repeats `; name="` that would take for ever. */
const longestHead = 8192

function wrongDisposition(type: string): string | undefined {
  if (type === 'form-data') return undefined
  return `wrong Content-Disposition '${type}' in multipart, expected 'form-data'\n`
}

/** What follows the first empty line; all of it while that line has not arrived. */
function afterBlankLine(text: string): string {
  const blank = /\r?\n\r?\n/.exec(text)
  return blank ? text.slice(blank.index + blank[0].length) : text
}

function escapeRegExp(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
