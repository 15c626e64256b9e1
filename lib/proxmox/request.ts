import { createHash, randomUUID } from 'node:crypto'
import type * as z from 'zod'
import type { CallSpec } from './calls.ts'
import type { Timeouts } from './options.ts'

export type Form = Readonly<Record<string, string | number | boolean | undefined>>

export type PathValues = {
  node?: string
  vmid?: number
  upid?: string
  storage?: string
  volume?: string
  userid?: string
  tokenid?: string
}

/** One call, ready to be sent: what to ask, of whom, and what a right answer looks like. */
export type Call<T> = {
  spec: CallSpec
  /** Values for the `{names}` of the path. */
  path?: PathValues
  /** Goes where Proxmox wants it: into the query of GET and DELETE, into the body of POST and PUT. */
  form?: Form
  file?: { name: string; bytes: Uint8Array }
  /** What of the file must not be shown, should an answer quote it. */
  secrets?: readonly string[]
  answer: z.ZodType<T>
  /** Default: reading for a GET, changing for the rest. */
  patience?: keyof Timeouts
  maxBodyBytes?: number
  /** For a clone, the source's VMID. */
  cloneOf?: number
}

/** What an error or a log line says of a call. */
export type Subject = Pick<Call<unknown>, 'spec' | 'path'>

/** A call's name: `POST /nodes/{node}/qemu/{vmid}/clone`. */
export function nameOf({ spec }: Subject): string {
  return `${spec.method} ${spec.path}`
}

/** What goes over the wire, but for the token. */
export function encode(call: Call<unknown>): {
  path: string
  headers: Record<string, string>
  body?: Uint8Array
} {
  for (const vmid of [call.path?.vmid, call.form?.vmid, call.form?.newid]) {
    if (vmid !== undefined && !isVmid(vmid)) throw new TypeError(`${nameOf(call)}: ${vmid} is no VMID`)
  }
  const path = `/api2/json${fill(call.spec.path, call.path ?? {})}`
  if (call.file) return { path, ...multipart(call.file) }
  const form = urlencode(call.form ?? {})
  // A body on GET or DELETE is refused (501), and so is none with a content type of JSON.
  if (call.spec.method === 'GET' || call.spec.method === 'DELETE') {
    return { path: form === '' ? path : `${path}?${form}`, headers: {} }
  }
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  return { path, headers, body: Buffer.from(form) }
}

// What is none must not come to name a path or a lock file. Source: pve-common JSONSchema.pm, pve-vmid.
const isVmid = (value: unknown) =>
  typeof value === 'number' && Number.isInteger(value) && value >= 100 && value <= 999_999_999

function fill(template: string, values: PathValues): string {
  const known = new Map<string, string | number>(Object.entries(values))
  return template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = known.get(name)
    // A segment of dots would climb out of its place in the path.
    if (value === undefined || /^\.{0,2}$/.test(String(value)))
      throw new TypeError(`bad {${name}} for ${template}`)
    return encodeURIComponent(String(value).toWellFormed())
  })
}

// Booleans are 1 and 0: a form's `true` is refused. URLSearchParams escapes `=` and `;`, at which pveproxy would split.
function urlencode(form: Form): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(form)) {
    if (value === undefined) continue
    params.set(name, typeof value === 'boolean' ? (value ? '1' : '0') : String(value))
  }
  return params.toString()
}

// pveproxy's parser (AnyEvent.pm file_upload_multipart) takes the fields in this order only and glues whatever follows
// the file to it; the checksum makes Proxmox refuse a file that was mangled on the way.
function multipart({ name, bytes }: { name: string; bytes: Uint8Array }): {
  headers: Record<string, string>
  body: Uint8Array
} {
  const boundary = `egress-${randomUUID()}`
  const field = (key: string, value: string) =>
    `--${boundary}\r\nContent-Disposition: form-data; name="${key}"\r\n\r\n${value}\r\n`
  const head = [
    field('content', 'iso'),
    field('checksum-algorithm', 'sha256'),
    field('checksum', createHash('sha256').update(bytes).digest('hex')),
    `--${boundary}\r\nContent-Disposition: form-data; name="filename"; filename="${name}"\r\n`,
    'Content-Type: application/octet-stream\r\n\r\n',
  ]
  const body = Buffer.concat([Buffer.from(head.join('')), bytes, Buffer.from(`\r\n--${boundary}--\r\n`)])
  return { headers: { 'content-type': `multipart/form-data; boundary=${boundary}` }, body }
}
