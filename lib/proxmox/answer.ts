import * as z from 'zod'
import { concealer } from './conceal.ts'
import { ProxmoxError, type ProxmoxErrorFields, type Sent } from './errors.ts'
import type { RawAnswer } from './options.ts'
import { type Call, nameOf, type Subject } from './request.ts'
import { readWords } from './words.ts'

// Perl's texts may look like numbers. Anything else is no text, and to make one of it could fail.
const Text = z.union([z.string(), z.number()]).transform(String)
const ErrorBody = z.object({
  // Only since pve-http-server 5.2.0: older hosts put the text into the reason phrase alone, and so do uploads.
  message: Text.nullish().catch(undefined),
  errors: z.record(z.string(), z.unknown()).nullish().catch(undefined),
})

/** No call of ours has more parameters, and what Proxmox says of one is a sentence. */
const maxErrors = 40
const maxErrorLength = 1000

/** The data of an answer in the shape that was asked for. @throws {ProxmoxError} anything else, with its code */
export function decode<T>(call: Call<T>, raw: RawAnswer, tokenId?: string): T {
  if (raw.status >= 400) throw refusal(call, raw, tokenId)
  const body = raw.status === 200 ? parseJson(raw.body) : undefined
  const parsed = z.object({ data: call.answer }).safeParse(body)
  if (parsed.success) return parsed.data.data
  const issue = parsed.error.issues[0]
  const at =
    body === undefined
      ? `status ${raw.status}`
      : `at ${issue?.path.join('.') || 'the top'}: ${issue?.message}`
  // A change that was answered like this was carried out, and we know nothing of its task.
  throw problem(call, { code: 'Unexpected', status: raw.status, sent: 'maybe' }, `unexpected answer, ${at}`)
}

function refusal(
  call: Call<unknown>,
  { status, reason, body }: RawAnswer,
  tokenId: string | undefined,
): ProxmoxError {
  const { message, errors } = ErrorBody.safeParse(parseJson(body)).data ?? {}
  const text = message?.trim() || reason.trim() || body.trim()
  // Read as it was said, shown without what it quotes of a file that we sent.
  const conceal = concealer(call.secrets ?? [])
  const said = errors == null ? undefined : texts(errors)
  const detail =
    said && Object.fromEntries(Object.entries(said).map(([name, text]) => [conceal(name), conceal(text)]))
  const reading = readWords(text, {
    status,
    ...(said === undefined ? {} : { detail: said }),
    ...(call.cloneOf === undefined ? {} : { cloneOf: call.cloneOf }),
  })
  const fields = Object.entries(detail ?? {}).map(([name, said]) => ` ${name}: ${said.trim()}`)
  return problem(
    call,
    {
      ...reading,
      status,
      sent: sentBy(status),
      ...(detail === undefined ? {} : { detail }),
      ...(tokenId !== undefined && (status === 401 || status === 403) ? { tokenId } : {}),
    },
    [conceal(text.slice(0, 4096)) || 'no words', ...fields].join(';'),
  )
}

function texts(errors: Record<string, unknown>): Record<string, string> {
  const all = Object.entries(errors).slice(0, maxErrors)
  return Object.fromEntries(
    all.flatMap(([name, given]) => {
      const said = Text.safeParse(given).data
      return said === undefined ? [] : [[tidy(name), said.slice(0, maxErrorLength)]]
    }),
  )
}

// 401 and 595 stop a request before its handler; the others of pveproxy's 59x and a gateway's 50x leave it open.
function sentBy(status: number): Sent {
  if (status === 401 || status === 595) return 'no'
  return (status >= 596 && status <= 599) || (status >= 502 && status <= 504) ? 'maybe' : 'yes'
}

/** An error about a call, which names itself, its node and its VM. */
export function problem(
  call: Subject,
  fields: Omit<ProxmoxErrorFields, 'call' | 'node' | 'vmid' | 'ambiguous'>,
  text: string,
): ProxmoxError {
  const { node, vmid } = call.path ?? {}
  const place = [node, vmid].filter((part) => part !== undefined).join('/')
  return new ProxmoxError(tidy(`${nameOf(call)}${place === '' ? '' : ` (${place})`}: ${text}`), {
    ...fields,
    call: nameOf(call),
    ...(node === undefined ? {} : { node }),
    ...(vmid === undefined ? {} : { vmid }),
    ambiguous: fields.sent === 'maybe' && call.spec.method !== 'GET',
  })
}

/** One line of bounded length: what a log, a row or a letter can hold. */
export function tidy(text: string): string {
  // Cut before it is looked through: an answer may be of any length.
  const line = text
    .slice(0, 4096)
    .replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ')
    .trim()
  return line.length > 600 ? `${line.slice(0, 599)}…` : line
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // A body that is not JSON is an answer too: its caller names it.
  }
}
