import { gunzipSync } from 'node:zlib'
import { readMime } from './mime.ts'
import { readYaml } from './yaml.ts'

/** One piece of user-data or vendor-data that cloud-init acts on. */
export type Part = {
  kind: 'cloud-config' | 'script' | 'boothook'
  name: string
  text: string
  /** How this cloud-config is merged into those before it, when its MIME headers say so. */
  mergeType?: string
}

/** What a text is by its first line. Longer beginnings first. Source: cloud-init 22.4, handlers/__init__.py. */
const beginnings = [
  ['#cloud-config-archive', 'text/cloud-config-archive'],
  ['#cloud-config-jsonp', 'text/cloud-config-jsonp'],
  ['## template: jinja', 'text/jinja2'],
  ['#cloud-boothook', 'text/cloud-boothook'],
  ['#include-once', 'text/x-include-once-url'],
  ['#part-handler', 'text/part-handler'],
  ['#cloud-config', 'text/cloud-config'],
  ['#include', 'text/x-include-url'],
  ['#!', 'text/x-shellscript'],
] as const

const kinds: Record<string, Part['kind']> = {
  'text/cloud-config': 'cloud-config',
  'text/x-shellscript': 'script',
  'text/cloud-boothook': 'boothook',
}

/** Takes a user-data document apart: packed, MIME, archive or a single text. What cloud-init would ignore is only noted. */
export function readParts(document: Uint8Array, source: string, log: (line: string) => void): Part[] {
  const bytes = unpacked(Buffer.from(document))
  if (!bytes) {
    log(`cloud-init: ${source} cannot be decompressed`)
    return []
  }
  if (bytes.toString('utf8').trim() === '') return []
  // A message is one only if it says so near its beginning; else it is taken by its first line.
  const isMime = /mime-version:/i.test(bytes.subarray(0, 4096).toString('latin1'))
  const leaves = isMime ? readMime(bytes) : [{ type: 'text/x-not-multipart', headers: {}, content: bytes }]
  return leaves.flatMap(({ type, headers, content }, index) => {
    const disposition: string | undefined = headers['content-disposition']
    const name =
      /filename="?([^";]+)"?/i.exec(disposition ?? '')?.[1] ?? `part-${String(index + 1).padStart(3, '0')}`
    const mergeType: string | undefined = headers['merge-type'] ?? headers['x-merge-type']
    return toParts(
      { type, name, source, content: unpacked(content) ?? content, ...(mergeType && { mergeType }) },
      log,
    )
  })
}

type Leaf = { type: string; name: string; source: string; content: Buffer; mergeType?: string }

function toParts(leaf: Leaf, log: (line: string) => void): Part[] {
  const text = leaf.content.toString('utf8')
  const isOpen = ['text/plain', 'text/x-not-multipart', 'text/x-shellscript', ...packedTypes].includes(
    leaf.type,
  )
  const type = (isOpen ? typeOf(text) : undefined) ?? leaf.type
  if (type === 'text/cloud-config-archive') return readArchive(leaf, log)
  const kind = kinds[type]
  if (!kind) {
    log(
      `cloud-init: unhandled ${type} in ${leaf.source} (${leaf.name}): '${text.slice(0, 24).replaceAll('\n', ' ')}…'`,
    )
    return []
  }
  return [{ kind, name: leaf.name, text, ...(leaf.mergeType && { mergeType: leaf.mergeType }) }]
}

const packedTypes = ['application/gzip', 'application/x-gzip']

function typeOf(text: string): string | undefined {
  const start = text.trimStart().toLowerCase()
  return beginnings.find(([beginning]) => start.startsWith(beginning))?.[1]
}

function readArchive(leaf: Leaf, log: (line: string) => void): Part[] {
  const entries = readYaml(leaf.content, `${leaf.source} (${leaf.name})`, log)
  if (!Array.isArray(entries)) return []
  return entries.flatMap((entry: unknown, index) => {
    const { type, content, filename } =
      typeof entry === 'string' ? { type: undefined, content: entry, filename: undefined } : Object(entry)
    const body = String(content ?? '')
    const kind = String(type ?? typeOf(body) ?? 'text/cloud-config')
    return toParts(
      { ...leaf, type: kind, name: String(filename ?? `part-${index + 1}`), content: Buffer.from(body) },
      log,
    )
  })
}

/** Anything may come packed. `undefined`: it looks packed and is not. */
function unpacked(bytes: Buffer): Buffer | undefined {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes
  try {
    return gunzipSync(bytes, { maxOutputLength: 16 * 1024 * 1024 })
  } catch {
    return undefined
  }
}
